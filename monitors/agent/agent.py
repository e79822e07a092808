"""The agent itself: :class:`Agent` puts sensors, spool, sender and probes together and runs them."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from monitors.agent.delays import DelayFile
from monitors.agent.sender import Sender
from monitors.agent.server import SampleServer
from monitors.agent.settings import Settings, address
from monitors.agent.site_links import SiteLinks
from monitors.agent.spool import Spool
from monitors.agent.stop_request import StopRequest
from monitors.schedule import Schedule
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.limits import cpu_limit
from monitors.sensors.network.clique import Clique
from monitors.sensors.network.corrected import CorrectedLink
from monitors.sensors.network.probe import BandwidthProbe, Link
from monitors.sensors.network.server import ProbeServer
from monitors.sensors.schedule import ProbeSchedule
from monitors.sources.contract import Sample, Source
from monitors.sources.this_host import ThisHost

_log = logging.getLogger(__name__)

#: Most samples that wait in memory while the disk takes none.
MOST_IN_MEMORY = 10_000


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
        self._stop = StopRequest()
        self._latest: Sample | None = None
        self._spool = Spool(settings.spool, settings.spool_samples)
        #: Where samples wait as long as the disk takes none.
        self._memory, self._written = Spool(Path(":memory:"), MOST_IN_MEMORY), True
        spools = (self._spool, self._memory) if settings.daemon else ()
        self._senders = [Sender(each, settings.daemon or "", settings.token) for each in spools]
        self._link = CorrectedLink(settings.interface)
        self._source = source or self._sensors()
        self._schedule = Schedule()
        self._server = self._listen()
        self._delays = DelayFile(settings.delays, settings.node) if settings.delays else None
        daemon, token = settings.sites_daemon or settings.daemon, settings.sites_token
        self._site_links = SiteLinks(settings.site, daemon, token) if daemon and token and settings.sites else None
        self._cliques = [each for each in (self._among_nodes(), self._among_sites()) if each is not None]

    def sample(self) -> None:
        """Take one sample and store it in the spool, in memory while the disk takes none; a failure loses no other."""
        readings = self._source.read()
        if readings.fault:
            _log.warning("no sample: %s", readings.fault)
        for sample in readings.samples:
            self._latest = sample
            try:
                self._spool.keep(sample)
                written = True
            except sqlite3.Error as error:
                self._memory.keep(sample)
                written = False
                if self._written:
                    _log.error("the spool cannot be written: %s; %d samples may wait in memory", error, MOST_IN_MEMORY)
            if written and not self._written:
                _log.info("the spool is written again")
            self._written = written

    def send(self) -> None:
        """Send the samples that wait to the daemon, where one is configured."""
        for sender in self._senders:
            try:
                sender.send()
            except sqlite3.Error as error:  # they are sent again
                _log.warning("samples that were sent cannot be removed from the spool: %s", error)
        if self._site_links:
            self._site_links.send()

    def run(self) -> None:
        """Sample, send and answer until :meth:`stop` is called; returns when everything has ended."""
        interval = self._settings.interval
        self._schedule.every(interval, self.sample)
        if self._senders or self._site_links:
            self._schedule.every(interval, self.send, spread=interval / 4)
        if self._server:
            self._server.start()
        for clique, server in self._cliques:
            server.start()
            threading.Thread(target=clique.run, daemon=True).start()
        _log.info("agent of node %s runs, %d unsent samples", self._settings.node, len(self._spool))
        self._stop.wait()
        self._end()

    def stop(self) -> None:
        """End :meth:`run` soon; called by any thread."""
        self._stop.make()

    def stop_on(self, *signals: int) -> None:
        """End :meth:`run` when this process gets one of these signals; called by the main thread."""
        self._stop.make_on(*signals)

    def _sensors(self) -> Source:
        processors, budget, limit = self._settings.processors, self._settings.probe_budget, cpu_limit(own=False)
        quota = cpu_limit().quota
        if budget > 0 and quota < min(processors, limit.quota):
            _log.warning("no CPU probes: the quota of this service, %.3g processors, would slow them down", quota)
            budget = 0.0
        schedule = ProbeSchedule(budget=budget) if budget > 0 else None
        cpu = ProbedCpu(processors, limit=limit, schedule=schedule, probing=schedule is not None)
        return ThisHost(cpu.read, self._link.read, self._settings.node)

    def _listen(self) -> SampleServer | None:
        if not self._settings.listen:
            return None
        return SampleServer(address(self._settings.listen), self._settings.token, lambda: self._latest)

    def _among_nodes(self) -> tuple[Clique, ProbeServer] | None:
        settings = self._settings
        if not settings.probe_listen or not settings.members:
            return None
        probe = BandwidthProbe(_secret("probe_secret", settings.probe_secret))
        return _joined(
            settings.node, settings.members, settings.probe_listen, probe, settings.probe_secret, self._found,
            settings.probe_period,
        )  # fmt: skip

    def _among_sites(self) -> tuple[Clique, ProbeServer] | None:
        """The clique of one agent of each site; its results do not concern this node's own link."""
        settings, links = self._settings, self._site_links
        if not settings.sites_listen or not settings.sites:
            return None
        probe = BandwidthProbe(_secret("sites_secret", settings.sites_secret), largest=settings.sites_transfer)
        return _joined(
            settings.site, settings.sites, settings.sites_listen, probe, settings.sites_secret,
            links.note if links else _unreported, settings.sites_period,
        )  # fmt: skip

    def _found(self, other: str, link: Link) -> None:
        _log.debug("%s: %.1f Mbit/s, round trip %.2f ms", other, link.bandwidth, 1e3 * link.round_trip)
        if link.bandwidth > 0:
            self._link.learn(link.bandwidth, link.transferred)
        if self._delays is not None:
            try:
                self._delays.note(other, link.round_trip)
            except OSError as error:
                _log.warning("the delay to %s is not recorded: %s", other, error)

    def _end(self) -> None:
        self._schedule.stop()
        for server in (self._server, *(server for _, server in self._cliques)):
            if server:
                server.shutdown()
                server.server_close()
        for clique, _ in self._cliques:
            clique.stop()
        self.send()
        self._spool.close()
        self._memory.close()
        _log.info("agent of node %s ends", self._settings.node)


def _unreported(other: str, link: Link) -> None:
    """What an agent without a token of its site measures is only logged."""
    _log.debug("site %s: %.1f Mbit/s, round trip %.2f ms", other, link.bandwidth, 1e3 * link.round_trip)


def _secret(name: str, text: str) -> bytes:
    if len(text.encode()) < 16:
        raise ValueError(f"{name} has {len(text.encode())} bytes, expected at least 16 before probes are answered")
    return text.encode()


def _joined(
    name: str,
    members: Mapping[str, str],
    listen: str,
    probe: BandwidthProbe,
    secret: str,
    found: Callable[[str, Link], None],
    period: float,
) -> tuple[Clique, ProbeServer]:
    """The part in a clique, and the server that answers its members."""
    places = {each: address(place) for each, place in members.items()}
    clique = Clique(name, places, probe, secret.encode(), found, period)
    return clique, ProbeServer(address(listen), secret.encode(), take_token=clique.take)
