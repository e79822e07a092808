"""The agent itself: :class:`Agent` puts sensors, spool, sender and probes together and runs them by APScheduler."""

from __future__ import annotations

import logging
import sqlite3
import threading
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

from monitors.agent.clock import StepWatch
from monitors.agent.delays import DelayFile
from monitors.agent.sender import Sender
from monitors.agent.server import SampleServer
from monitors.agent.settings import Settings, address
from monitors.agent.spool import Spool
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.network.clique import Clique
from monitors.sensors.network.corrected import CorrectedLink, outward_interface
from monitors.sensors.network.probe import BandwidthProbe, Link
from monitors.sensors.network.server import ProbeServer
from monitors.sensors.schedule import ProbeSchedule
from monitors.sources.contract import Sample, Source
from monitors.sources.this_host import ThisHost

_log = logging.getLogger(__name__)


class Agent:
    """Samples this node until it is stopped.

    Parameters
    ----------
    settings : what to do.
    source : where samples come from, in place of this node's own sensors.

    Raises
    ------
    ValueError : the settings ask for what this node has not got, in one line.
    """

    def __init__(self, settings: Settings, source: Source | None = None) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._latest: Sample | None = None
        self._spool = Spool(settings.spool, settings.spool_samples)
        self._sender = Sender(self._spool, settings.daemon, settings.token) if settings.daemon else None
        self._link = CorrectedLink(settings.interface or outward_interface())
        self._source = source or self._sensors()
        self._watch = StepWatch()
        self._scheduler = BackgroundScheduler(timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None})
        self._server = self._listen()
        self._clique: Clique | None = None
        self._delays = DelayFile(settings.delays, settings.node) if settings.delays else None
        self._probe_server = self._join()

    def sample(self) -> None:
        """Take one sample and store it in the spool; a failure is logged and loses that sample only."""
        readings = self._source.read()
        if readings.fault:
            _log.warning("no sample: %s", readings.fault)
        for sample in readings.samples:
            self._latest = sample
            try:
                self._spool.keep(sample)
            except sqlite3.Error as error:
                _log.error("a sample is lost, the spool cannot be written: %s", error)

    def send(self) -> None:
        """Send the samples that wait on disk to the daemon, where one is configured."""
        if self._sender:
            self._sender.send()

    def run(self) -> None:
        """Sample, send and answer until :meth:`stop` is called; returns when everything has ended."""
        interval = self._settings.interval
        self._scheduler.add_job(self.sample, "interval", seconds=interval, id="sample")
        if self._sender:
            self._scheduler.add_job(self.send, "interval", seconds=interval, id="send", jitter=interval / 4)
        self._scheduler.start()
        if self._server:
            self._server.start()
        if self._probe_server and self._clique:
            self._probe_server.start()
            threading.Thread(target=self._clique.run, daemon=True).start()
        _log.info("agent of node %s runs, %d unsent samples", self._settings.node, len(self._spool))
        while not self._stop.wait(interval):
            self._mind_the_clock()
        self._end()

    def stop(self) -> None:
        """End :meth:`run` soon; may be called from a signal handler."""
        self._stop.set()

    def _mind_the_clock(self) -> None:
        """APScheduler waits for times of day: when the clock is set, its jobs are due an interval from now again."""
        if step := self._watch.step():
            _log.warning("the clock was set by %.1f s", step)
            due = datetime.now(UTC) + timedelta(seconds=self._settings.interval)
            for job in self._scheduler.get_jobs():
                job.modify(next_run_time=due)

    def _sensors(self) -> Source:
        budget = self._settings.probe_budget
        schedule = ProbeSchedule(budget=budget) if budget > 0 else None
        cpu = ProbedCpu(self._settings.processors, schedule=schedule, probing=schedule is not None)
        return ThisHost(cpu.read, self._link.read, self._settings.node)

    def _listen(self) -> SampleServer | None:
        if not self._settings.listen:
            return None
        return SampleServer(address(self._settings.listen), self._settings.token, lambda: self._latest)

    def _join(self) -> ProbeServer | None:
        settings = self._settings
        if not settings.probe_listen or not settings.members:
            return None
        secret = settings.probe_secret.encode()
        if len(secret) < 16:
            raise ValueError(f"probe_secret has {len(secret)} bytes, expected at least 16 before probes are answered")
        members = {name: address(place) for name, place in settings.members.items()}
        probe = BandwidthProbe(secret)
        self._clique = Clique(settings.node, members, probe, secret, self._found, settings.probe_period)
        return ProbeServer(address(settings.probe_listen), secret, take_token=self._clique.take)

    def _found(self, other: str, link: Link) -> None:
        _log.debug("%s: %.1f Mbit/s, round trip %.2f ms", other, link.bandwidth, 1e3 * link.round_trip)
        if link.bandwidth > 0:
            self._link.learn(link.bandwidth)
        if self._delays is not None:
            try:
                self._delays.note(other, link.round_trip)
            except OSError as error:
                _log.warning("the delay to %s is not recorded: %s", other, error)

    def _end(self) -> None:
        self._scheduler.shutdown(wait=True)
        for server in (self._server, self._probe_server):
            if server:
                server.shutdown()
                server.server_close()
        if self._clique:
            self._clique.stop()
        self.send()
        self._spool.close()
        _log.info("agent of node %s ends", self._settings.node)
