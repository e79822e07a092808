"""Available CPU of this host: :class:`ProbedCpu`, passive views corrected by a short spin that runs seldom.

As in the Network Weather Service the bias of each passive view against the probe is kept, and the view that has lately
been nearest is used and corrected. Views differ where they are blind: the run queue to priorities and short bursts,
utilisation to who would win a fight for the processor, both to a host that takes time from its guests.

While a job is followed nothing is probed: the kernel counts how long its processes ran and how long they waited for a
processor, and what is idle and what the job itself uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

from monitors.sensors.cpu_views import followed_view, queue_view, quota_view, turns_view, utilisation_view
from monitors.sensors.job import JobUse
from monitors.sensors.limits import CpuLimit, cpu_limit, cpu_seconds, online_processors
from monitors.sensors.processor_time import idle_and_busy
from monitors.sensors.schedule import ProbeSchedule
from monitors.sensors.spin import Spin, spin

#: Weight of the newest probe in the usual error of an estimate.
_GAIN = 0.5
#: What a spin of 0.2 s and the truth over seconds differ by: a bias follows a larger miss at once, a smaller slowly.
_NOISE = 0.05
#: A processor always gives a new process something.
_LEAST = 0.01


class ProbedCpu:
    """Share of one processor that each of k processes would get, or that the job that is followed gets.

    Parameters
    ----------
    processors : k.
    limit : what this process may use; read from the control groups where None.
    probe : measures the truth; :func:`spin` on k threads where None.
    schedule : decides when to probe; by default at most 0.05 % of one processor's time goes into probes.
    probing : whether to probe at all; without it the utilisation view answers as it is.
    clock : monotonic seconds.

    Examples
    --------
    >>> sensor = ProbedCpu()
    >>> time.sleep(0.05)
    >>> 0 < sensor.read() <= 1
    True
    """

    def __init__(
        self,
        processors: int = 1,
        *,
        limit: CpuLimit | None = None,
        probe: Callable[[], Spin] | None = None,
        schedule: ProbeSchedule | None = None,
        probing: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if processors < 1:
            raise ValueError(f"processors is {processors}, expected at least 1")
        self.processors = processors
        self._limit = limit or cpu_limit()
        self._probe = probe or (lambda: spin(threads=processors))
        self._schedule = (schedule or ProbeSchedule()) if probing else None
        self._clock = clock
        self._bias = {"utilisation": 0.0, "queue": 0.0}  # the first wins ties
        self._miss = dict.fromkeys(self._bias, 0.0)
        self._shares_core = _processors_share_cores()
        self._best_pace = 0.0
        self._job: JobUse | None = None
        self._before = self._now()

    def follow(self, pid: int) -> None:
        """From now on count this process and its descendants as the job, not as load, and do not probe."""
        self._job, self._schedule = JobUse(pid), None
        self._before = self._now()

    def read(self) -> float:
        """Mean share since the last reading, in (0, 1], NaN where it was too soon; probes when it is time to.

        Of a job that is followed it is the share of the k-th of its processes. The kernel moves processes to where
        there is room, so the k-th gets the processor with the k-th most to spare at that time, whichever it is.
        """
        processors, idle, busy, stolen, seconds, cap = self._passed()
        runnable = max(_runnable() - 1, 0)
        if self._job is not None:
            running, own, turns = self._job.since_last(processors, busy)
            # The kernel counts who is ready to run on the whole host, also where we may not run.
            others = max(runnable - running, 0) / max(psutil.cpu_count() or 1, 1)
            share = followed_view(idle, busy, own, others, self.processors)
            share = turns_view(turns, seconds, stolen / max(sum(busy), 1e-9), share, len(idle), self.processors)
            return min(share, cap)
        views = self._views(sum(idle), sum(busy), runnable)
        if self._schedule and self._schedule.due(self._clock(), views[self._nearest()]):
            self._look(self._schedule, views, cap)
        view = self._nearest()
        return min(max(views[view] + self._bias[view], _LEAST), cap)

    def _look(self, schedule: ProbeSchedule, views: dict[str, float], cap: float) -> None:
        """Probe, and learn from it; where no threads can be started the views stay as they are until the next time."""
        try:
            seen = self._probe()
        except RuntimeError:
            schedule.probed(self._clock(), views[self._nearest()], 0.0, views[self._nearest()])
            return
        self._learn(views, min(self._truth(seen), cap))
        schedule.probed(self._clock(), self._truth(seen), seen.cost, views[self._nearest()])
        self._before = self._now()  # what the probe itself used is no load

    def _nearest(self) -> str:
        """The view that has lately been nearest to the probes, with its correction."""
        return min(self._miss, key=lambda name: self._miss[name])

    def _views(self, idle: float, busy: float, runnable: int) -> dict[str, float]:
        """What passive counters say: seconds idle and busy, and others on the whole host that are ready to run."""
        count = len(self._limit.processors)
        whole = max(idle + busy, 1e-9)
        runs = runnable * count / max(psutil.cpu_count() or count, 1)
        return {
            "queue": queue_view(count, runs, self.processors),
            "utilisation": utilisation_view(count * idle / whole, count * busy / whole, runs, self.processors),
        }

    def _truth(self, seen: Spin) -> float:
        """The probe's share; on processors that share a core, times how fast the work went against the fastest seen."""
        self._best_pace = max(self._best_pace, seen.pace)
        return seen.share * (seen.pace / self._best_pace if self._shares_core else 1.0)

    def _learn(self, views: dict[str, float], truth: float) -> None:
        for name, view in views.items():
            miss = truth - view - self._bias[name]
            self._miss[name] += _GAIN * (abs(miss) - self._miss[name])
            # The gain of a filter that takes the miss for drift and noise together: m^2/(m^2 + noise^2).
            self._bias[name] += miss**3 / (miss**2 + _NOISE**2)

    def _passed(self) -> tuple[list[int], list[float], list[float], float, float, float]:
        """What passed since the last reading.

        Returns
        -------
        processors, idle, busy, stolen, seconds, cap : the allowed processors that are there, idle and busy seconds of
            each; those of the latter that the host of this virtual machine took; the length of the interval; and the
            most that a quota allows.
        """
        before, self._before = self._before, self._now()
        seconds, used = self._before.moment - before.moment, self._before.used - before.used
        processors = [number for number in self._before.spent if number in before.spent]
        pairs = [(self._before.spent[number], before.spent[number]) for number in processors]
        idle = [now[0] - then[0] for now, then in pairs]
        busy = [max(now[1] - then[1], 0.0) for now, then in pairs]
        cap = 1.0
        if self._limit.quota != float("inf"):
            cap = quota_view(self._limit.quota, used / max(seconds, 1e-9), self.processors)
        return processors, idle, busy, max(self._before.stolen - before.stolen, 0.0), seconds, cap

    def _now(self) -> _Counters:
        times = dict(zip(online_processors(), psutil.cpu_times(percpu=True), strict=False))
        allowed = {number: times[number] for number in self._limit.processors if number in times}
        spent = {number: idle_and_busy(each) for number, each in allowed.items()}
        stolen = sum(getattr(each, "steal", 0.0) for each in allowed.values())
        used = cpu_seconds(self._limit.usage) if self._limit.usage else 0.0
        return _Counters(self._clock(), spent, stolen, used)


class _Counters(NamedTuple):
    """Moment; seconds that each allowed processor was idle and busy, stolen from all, and used by the group."""

    moment: float
    spent: dict[int, tuple[float, float]]
    stolen: float
    used: float


def _runnable() -> int:
    """Tasks that are running or ready to, this one among them."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].split("/")[0])


def _processors_share_cores() -> bool:
    logical, physical = psutil.cpu_count(), psutil.cpu_count(logical=False)
    return bool(logical and physical and logical > physical)
