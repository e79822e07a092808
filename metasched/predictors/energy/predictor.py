"""The robust method for runs with recorded energy or clock: times at any clock, and joules as power times time.

The robust predictor learns what runs would have taken at one clock, see ``clock``; ``power`` learns their mean power.
The errors of the two belong together (a run that waits longer than expected draws less), so the interval of their
product has scores of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.abilities import Plan, PowerTerm, UsualLoad, understood
from metasched.predictors.columns import ByColumns, Columns, broadcast, columns_of
from metasched.predictors.contract import Learned, Part, Predictions, Term
from metasched.predictors.energy.clock import Clock, at_clock
from metasched.predictors.energy.metered_runs import MISREAD, conditions, frequencies_of, misread
from metasched.predictors.energy.power import Power
from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.window import RunWindow
from metasched.predictors.robust.learning import AT_ONCE, REVISIT, imagined
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import DEFAULT_SETTINGS, InputError, Interval, Prediction, Request, Run, Settings

#: Runs as many as which speak against the errors of time and power belonging together.
UNRELATED = 10
#: Between the parts of the hardware that the meters of the runs saw.
COVERS_APART = ", "
#: Clocks that far outside those learned, as a share, are warned of.
WARNED = 0.02


@dataclass(frozen=True)
class MeteredState:
    """All that is known at one moment.

    Parameters
    ----------
    times : what runs take at the reference clock.
    clock : how times follow the clock; None where no run recorded it.
    power : None where no run recorded its energy.
    calibration : scores of past predictions of energy.
    together : correlation of the errors of time and power.
    covers : what the meters of the runs saw, such as node.
    since : runs since clock and scales were last looked for; while few are metered, power is fitted again to each.
    """

    times: RobustPredictor
    clock: Clock | None
    power: Power | None
    calibration: Calibration
    together: float
    covers: str
    since: int = 0


class MeteredPredictor(LearnedState[MeteredState], ByColumns):
    """Times at any clock, and energy.

    >>> def run(n, p, f):
    ...     seconds = 1e-3 * n**1.5 / p * (0.4 + 0.6 * 2000.0 / f)
    ...     joules = (40.0 + 10.0 * p * (f / 2000.0) ** 2) * seconds
    ...     return Run("cg", "c8", n, p, 0.9, 90.0, seconds, extra={"energy": str(joules), "frequency": str(f)})
    >>> runs = [run(n, p, f) for n in range(100, 900, 100) for p in (1, 2, 4, 8) for f in (1200, 2000)]
    >>> predictor = MeteredPredictor("cg", "c8").fit(runs)
    >>> expected = run(450, 4, 1600)
    >>> abs(predictor.predict(expected.request).execution_time / expected.execution_time - 1) < 0.02
    True
    >>> abs(predictor.energy_predictor().predict(expected.request).execution_time / expected.energy - 1) < 0.03
    True
    """

    name = "robust"

    def __init__(self, application: str = "", cluster: str = "", *, capacity: int = 512) -> None:
        self.application, self.cluster = application, cluster
        self.window = RunWindow(capacity=capacity)
        self.asked: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.application!r}, {self.cluster!r})"

    @classmethod
    def of_times(cls, times: RobustPredictor) -> MeteredPredictor:
        """A predictor of the times that another has learned, which goes on with energy and clock.

        Parameters
        ----------
        times : fitted to runs without energy or clock; it belongs to the new predictor from now on.
        """
        made = cls(times.application, times.cluster, capacity=times.window.capacity)
        made.window = RunWindow(times.window, times.window.capacity, times.window.seen)
        made._state = MeteredState(times, None, None, imagined(), 0.0, "")
        return made

    @property
    def times(self) -> RobustPredictor:
        """The times of runs at the reference clock."""
        return self.state.times

    def fit(self, runs: Iterable[Run]) -> MeteredPredictor:
        """Fit to training runs and forget everything learned before."""
        runs = at_least_one(runs)
        refuse_unrepresentable(runs)
        self.window = RunWindow(runs, self.window.capacity)
        self._refit(imagined(), None)
        return self

    def learn(self, run: Run) -> None:
        """Take one finished run into account."""
        if not representable(run):
            return
        state = self.state
        calibration = state.calibration
        self.window.add(run)
        if run.energy is not None and state.power is not None and self._metered(self.times)[-1:] == [run]:
            joules, spread = self._of_run(run)
            calibration = calibration.learned(score(run.energy, joules, spread))
        clocked = run.settings.frequency is not None
        again = (clocked and state.clock is None) or (run.energy is not None and state.power is None)
        state.times.learn(self._at_reference([run], state.times, state.clock)[0])
        if again or (state.since + 1 >= REVISIT and self._clocked):
            self._refit(calibration, state)
            return
        since = (state.since + 1) % REVISIT
        known = None
        if state.power is not None and since and len(self._metered(state.times)) > AT_ONCE:
            known = state.power.process.scales, state.power.numbers
        power = self.power_of(state.times, state.clock, known)
        self._state = replace(state, power=power, calibration=calibration, covers=self._covered(), since=since)

    def settle(self) -> None:
        """Wait for a search that is running in the background."""
        self.times.settle()

    @property
    def _clocked(self) -> bool:
        """Whether runs were at several clocks."""
        return len({run.settings.frequency for run in self.window} - {None}) > 1

    def _covered(self) -> str:
        """The parts of the hardware that the meters of the runs saw, each once."""
        seen = (run.energy_covers.split(COVERS_APART) for run in self.window if run.energy is not None)
        return COVERS_APART.join(sorted({part for parts in seen for part in parts} - {""}))

    def _refit(self, calibration: Calibration, before: MeteredState | None) -> None:
        """Find the clock, the times at its reference, and power again.

        Parameters
        ----------
        calibration : scores of past predictions of energy.
        before : whose scores of past predictions of times, and whose drift, remain; None for a fresh start.
        """
        runs = list(self.window) if before is None else self._by_now(before)
        # What of each run is computation was learned before, or is learned as if all had been at one clock.
        times = self._robust(_without_clocks(runs)) if before is None else before.times
        log_time, clocks = np.log([run.execution_time for run in runs]), frequencies_of(runs)
        clock = Clock.fit(_points_of(runs, times), log_time, clocks)
        known = self._at_reference(runs, times, clock)
        if before is not None:
            times = before.times.with_times(known)
        elif clock is not None and clock.least < clock.most:
            times = self._robust(known)
        power = self.power_of(times, clock)
        together = self._together(times, power)
        # Replaced as a whole, so that concurrent predictions never use a part of it.
        self._state = MeteredState(times, clock, power, calibration, together, self._covered())

    def _robust(self, runs: Sequence[Run]) -> RobustPredictor:
        """A predictor of times that was fitted to runs at one clock."""
        return RobustPredictor(self.application, self.cluster, capacity=self.window.capacity).fit(runs)

    def _by_now(self, known: MeteredState) -> list[Run]:
        """The runs at their clocks, those from before a drift as long as they would take now."""
        runs = list(self.window)
        by_clock = _paces(runs, known.times, known.clock)
        return [
            replace(run, execution_time=own.execution_time * by)
            for run, own, by in zip(runs, known.times.window, by_clock, strict=True)
        ]

    @staticmethod
    def _at_reference(runs: Sequence[Run], times: RobustPredictor, clock: Clock | None) -> list[Run]:
        """Runs as they would have been at the reference clock, without their clocks."""
        by_clock = _paces(runs, times, clock)
        bare = _without_clocks(runs)
        return [replace(run, execution_time=run.execution_time / by) for run, by in zip(bare, by_clock, strict=True)]

    def _metered(self, times: RobustPredictor) -> list[Run]:
        """The runs whose energy can be learned: not those of distrusted users, nor where a meter must have jumped."""
        doubted = times.state.doubted
        runs = [run for run in self.window if run.energy is not None and run.user not in doubted]
        return [run for run, wrong in zip(runs, misread(runs), strict=True) if not wrong]

    def power_of(
        self, times: RobustPredictor, clock: Clock | None, known: tuple[Scales, Sequence[float]] | None = None
    ) -> Power | None:
        """Power from the runs with a recorded energy.

        Parameters
        ----------
        times : what predicts times at the reference clock.
        clock : how times follow the clock; None where it is not known.
        known : scales of the process of log power, and numbers of the formula of power, in its order (logarithms of W);
            looked for where None.
        """
        runs = self._metered(times)
        if not runs:
            return None
        watts = np.array([(run.energy or math.nan) / run.execution_time for run in runs])
        inputs, work = _inputs(clock, _points_of(runs, times), frequencies_of(runs))
        return Power.fit(inputs, work, watts, known)

    def _together(self, times: RobustPredictor, power: Power | None) -> float:
        """Correlation of the errors of time and power, each run predicted from the others."""
        time = times.state.model.process
        if power is None or len(time.error) != len(power.process.error) or len(self._metered(times)) != len(time.error):
            return 0.0
        by_time, by_power = (error / spread for error, spread in (time.leave_one_out(), power.process.leave_one_out()))
        size = math.sqrt(float(by_time @ by_time) * float(by_power @ by_power))
        return float(by_time @ by_power) / (size + UNRELATED * size / len(by_time)) if size else 0.0

    def _of_run(self, run: Run) -> tuple[float, float]:
        """Energy predicted for a run (J), and the spread of its logarithm."""
        log_energy, spread = self.under(understood(run.settings, [self.times])[0]).log_energy(*columns_of(run.request))
        return math.exp(float(log_energy[0])), float(spread[0])

    def log_energy(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Logarithms of energies (J) and their spreads, for arrays of one shape (n,).

        Raises
        ------
        InputError : when no run recorded its energy.
        """
        state = self.state
        log_time, spread = self.times.state.predict(n, p, cpu, bw)
        log_watts, doubt = self.power(n, p, cpu, bw)
        if state.clock is not None:
            points = _points(self.times, n, p, cpu, bw)
            log_time = log_time + np.log(state.clock.factor(points, np.full(len(n), self._frequency)))
            spread = np.hypot(spread, state.clock.spread(points, self._frequency))
        mixed = spread**2 + doubt**2 + 2.0 * state.together * spread * doubt
        return log_time + log_watts, np.sqrt(np.maximum(mixed, doubt**2 / 4.0))

    @property
    def _frequency(self) -> float:
        """The requested clock (MHz); the reference clock if none is requested."""
        clock = self.state.clock
        return self.asked or (math.nan if clock is None else clock.reference)

    def energy_predictor(self) -> EnergyPredictor | None:
        """The predictor of energy in its present state, with joules instead of seconds; None without metered runs."""
        return None if self.state.power is None else EnergyPredictor(self)

    def under(self, settings: Settings) -> MeteredPredictor:
        """The predictor as it is now, answering for other settings and another clock."""
        view = copy.copy(self)
        view._state = replace(self.state, times=self.times.under(replace(settings, frequency=None)))
        view.asked = settings.frequency if settings.frequency is not None else self.asked
        return view

    @property
    def clocks(self) -> tuple[float, float] | None:
        """The lowest and the highest learned clock (MHz); None if no run recorded one."""
        clock = self.state.clock
        return None if clock is None else (clock.least, clock.most)

    @property
    def usual_clock(self) -> float | None:
        """The median of the learned clocks (MHz), which answers are for where none is requested; None without two."""
        clock = self.state.clock
        return None if clock is None or clock.least == clock.most else clock.reference

    @property
    def layouts(self) -> frozenset[tuple[int | None, int]]:
        """Processes per node and threads of the runs learned, where they differ."""
        return self.times.layouts

    @property
    def usual_loads(self) -> tuple[UsualLoad, UsualLoad]:
        """CPU and bandwidth with which runs are learned where they were not measured."""
        return self.times.usual_loads

    @property
    def teaching(self) -> tuple[Run, ...]:
        """The runs learned as they would have been at the reference clock, oldest first."""
        return self.times.teaching

    def plan(self, asked: Sequence[Request], candidates: Sequence[Request], budget: float) -> Plan:
        """Choose runs to make next at the reference clock, see the robust method."""
        return self.times.plan(asked, candidates, budget)

    def widths(self, spreads: Floats, level: float) -> Floats:
        """Upper over lower ends of intervals, from spreads of log time, both of shape (t,)."""
        return self.times.widths(spreads, level)

    def prepare(self) -> None:
        """Have what answers distrusted users at hand."""
        self.times.prepare()

    def for_user(self, user: str) -> MeteredPredictor:
        """The predictor for a user, as in the robust method; clock and power are common to all users."""
        view = copy.copy(self)
        view._state = replace(self.state, times=self.times.for_user(user))
        return view

    def _by_clock(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times over those at the reference clock, and the spreads of their logarithms, both of shape (n,)."""
        clock = self.state.clock
        if clock is None or self.asked is None:
            return np.ones(len(n)), np.zeros(len(n))
        points = _points(self.times, n, p, cpu, bw)
        return clock.factor(points, np.full(len(n), self.asked)), clock.spread(points, self.asked)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the execution time (s) at the clock that the request states."""
        view = self.under(request.settings)
        found = self.times.predict(replace(request, settings=replace(request.settings, frequency=None)), level)
        time, low, high = (np.array([end]) for end in (found.execution_time, found.interval.low, found.interval.high))
        many = at_clock(Predictions(time, low, high, level), *view._by_clock(*columns_of(request)))
        interval = Interval(float(many.low[0]), float(many.high[0]), level)
        return Prediction(float(many.execution_time[0]), interval, found.model, (*found.warnings, *view.doubts))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings about the requested clock, for users."""
        clock = self.state.clock
        if self.asked is None:
            return ()
        if clock is None:
            return ("no run learned has a recorded frequency: its effect is unknown",)
        if clock.least == clock.most and self.asked != clock.least:
            return (f"all runs learned were at {clock.least:g} MHz: the effect of {self.asked:g} MHz is assumed",)
        if clock.outside(self.asked) > WARNED:
            return (f"frequency {self.asked:g} MHz is outside the {clock.least:g} to {clock.most:g} MHz learned",)
        return ()

    def clock_spread(self, beside: float | None, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Spreads of the logarithms of its times over those at another clock (MHz), for arrays of one shape (n,)."""
        clock = self.state.clock
        if clock is None:
            return np.zeros(len(n))
        return clock.spread(_points(self.times, n, p, cpu, bw), self._frequency, beside)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return at_clock(self.times.predict_many(*columns, level=level), *self._by_clock(*columns))

    def _expected(self, columns: Columns) -> Floats:
        clock, expected = self.state.clock, self.times.expect_many(*columns)
        if clock is None or self.asked is None:
            return expected
        return expected * clock.factor(_points(self.times, *columns), np.full(len(expected), self.asked))

    def power_terms(self, problem_size: float, processors: ArrayLike) -> tuple[PowerTerm, ...]:
        """Those of the robust method, as long as the clock makes them."""
        terms = self.times.power_terms(problem_size, processors)
        by_clock = self._terms_by_clock(problem_size, processors)
        return tuple(each._replace(factor=each.factor * by) for each, by in zip(terms, by_clock, strict=True))

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the times at the reference clock that are computation, shape (n,)."""
        return self.times.computing_share(problem_size, processors, available_cpu, available_bandwidth)

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The terms of the robust method, as long as the clock makes them."""
        terms = self.times.breakdown(replace(request, settings=replace(request.settings, frequency=None)))
        by_clock = self.under(request.settings)._terms_by_clock(request.problem_size, [request.processors])
        return tuple(
            replace(each, seconds=each.seconds * float(by[0])) for each, by in zip(terms, by_clock, strict=True)
        )

    def _terms_by_clock(self, problem_size: float, processors: ArrayLike) -> tuple[Floats, Floats]:
        """Computation and communication at the requested clock over those at the reference clock, each (k,)."""
        p, clock = np.asarray(processors, dtype=np.float64), self.state.clock
        if clock is None or self.asked is None:
            return np.ones(len(p)), np.ones(len(p))
        sizes = np.log(np.column_stack([np.full(len(p), problem_size), p]))
        return clock.factors(sizes, np.full(len(p), self.asked))

    def learned(self) -> Learned:
        """What the robust method learned, and the parameters of clock and power."""
        state, found = self.state, self.times.learned()
        facts = dict(found.parts[0].facts)
        if state.clock is not None:
            facts["clock"] = f"{state.clock.least:g} to {state.clock.most:g} MHz"
        if state.power is not None:
            facts["power"] = f"{state.power.unit:.4g} W on average" + (f", of {state.covers}" if state.covers else "")
            wrong = misread([run for run in self.window if run.energy is not None])
            if any(wrong):
                off = f"a mean power more than {MISREAD:g} times off that of the others"
                facts["energy left out"] = f"{sum(wrong)} of {len(wrong)} runs, with {off}"
        notes = found.notes
        if COVERS_APART in state.covers:
            notes = (*notes, f"energies of runs were measured of different parts ({state.covers}): do not mix them")
        return Learned((Part("", found.parts[0].models, facts), *found.parts[1:]), notes)

    @property
    def notices(self) -> tuple[str, ...]:
        """Distrusted users, and changes common to all users."""
        return self.times.notices

    def expect_watts(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """The mean powers (W) of :meth:`power` without their spreads, for arrays of one shape (n,)."""
        power, inputs = self._power_asked(n, p, cpu, bw)
        return np.exp(power.expect(*inputs))

    def power(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Logarithms of mean powers (W) and their spreads, for arrays of one shape (n,).

        Raises
        ------
        InputError : when no run recorded its energy.
        """
        power, inputs = self._power_asked(n, p, cpu, bw)
        return power.predict(*inputs)

    def _power_asked(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Power, tuple[Floats, Floats]]:
        """What knows the power, and what it is asked with."""
        state = self.state
        if state.power is None:
            raise InputError("no run learned has a recorded energy")
        return state.power, _inputs(state.clock, _points(self.times, n, p, cpu, bw), np.full(len(n), self._frequency))


class EnergyPredictor(ByColumns):
    """The energy of a metered predictor, in the place of its times: a prediction's seconds are joules."""

    name = "energy"

    def __init__(self, metered: MeteredPredictor) -> None:
        self._metered = metered
        self.application, self.cluster = metered.application, metered.cluster

    def fit(self, runs: Iterable[Run]) -> EnergyPredictor:
        """Fit the predictor whose energy this is."""
        self._metered.fit(runs)
        return self

    def learn(self, run: Run) -> None:
        """Have the predictor whose energy this is learn a run."""
        self._metered.learn(run)

    def under(self, settings: Settings) -> EnergyPredictor:
        """The energy as it is now under other settings."""
        return self if settings == DEFAULT_SETTINGS else EnergyPredictor(self._metered.under(settings))

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the energy of one run (J) with its interval."""
        view = self.under(request.settings)
        found = ByColumns.predict(view, request, level)
        if not 0.0 < found.execution_time < math.inf:
            raise InputError(f"the model predicts {found.execution_time} J for {request}")
        return replace(found, warnings=view._metered.doubts)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        log_energy, spread = self._metered.log_energy(*columns)
        energy = np.exp(log_energy)
        return Predictions(energy, *self._metered.state.calibration.ends(energy, spread, level), level)

    def expect_watts(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """Mean powers (W), by which predicted times (s) become energies, shape (n,)."""
        return self._metered.expect_watts(*broadcast(problem_size, processors, available_cpu, available_bandwidth))

    def most_watts(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float,
    ) -> Floats:
        """Upper ends of the intervals of mean power (W), shape (n,)."""
        log_watts, doubt = self._metered.power(*broadcast(problem_size, processors, available_cpu, available_bandwidth))
        return np.asarray(np.exp(log_watts + scipy.special.ndtri(0.5 + 0.5 * level) * doubt))


def _inputs(clock: Clock | None, points: Floats, frequency: Floats) -> tuple[Floats, Floats]:
    """What power is asked with: logarithms of N, P, f, CPU and bandwidth (n, 5), and the work (n, 2)."""
    if clock is None:
        known, pace = np.ones(len(points)), np.ones(len(points))
    else:
        known = np.where(np.isfinite(frequency), frequency, clock.reference)
        pace = clock.pace(points, known)
    return np.column_stack([points[:, :2], np.log(known), points[:, 2:4]]), np.column_stack([points[:, 4], pace])


def _points(times: RobustPredictor, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
    """What the clock is asked with, shape (n, 5): logarithms of the columns, and how much is computation."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = np.nan_to_num(times.computing_share(n, p, cpu, bw), nan=1.0)  # where no time can be computed
    return np.column_stack([np.log(np.stack([n, p, cpu, bw], axis=1)), share])


def _points_of(runs: Sequence[Run], times: RobustPredictor) -> Floats:
    """The same of runs; loads that were not measured are the usual ones."""
    columns = np.exp(conditions(runs, times.usual_loads)).T
    found = np.empty((len(runs), 5))
    places: dict[Settings, list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault(replace(run.settings, frequency=None), []).append(place)
    for settings, own in places.items():
        known, _ = understood(settings, [times])  # a run may be the first with a parameter
        found[own] = _points(times.under(known), *columns[:, own])
    return found


def _paces(runs: Sequence[Run], times: RobustPredictor, clock: Clock | None) -> list[float]:
    """Times of runs at their clocks over those at the reference clock."""
    if clock is None:
        return [1.0] * len(runs)
    found: list[float] = clock.factor(_points_of(runs, times), frequencies_of(runs)).tolist()
    return found


def _without_clocks(runs: Sequence[Run]) -> list[Run]:
    """Runs whose clocks were not recorded."""
    return [replace(run, extra={name: cell for name, cell in run.extra.items() if name != "frequency"}) for run in runs]
