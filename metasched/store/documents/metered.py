"""The document of the robust method if runs have an energy or a clock."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from metasched.predictors.energy.clock import MEANS as CLOCK_MEANS
from metasched.predictors.energy.clock import Clock
from metasched.predictors.energy.power import MEANS as POWER_MEANS
from metasched.predictors.energy.predictor import MeteredPredictor, MeteredState
from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.representable import representable
from metasched.predictors.memory.window import RunWindow
from metasched.records import InputError, Run
from metasched.store.documents.adaptive import RobustDocument
from metasched.store.documents.parts import Count, LearnedPart, Part, RecordPart, Row, SettingPart, runs_of
from monitors.validated_fields import Positive

#: Numbers, and logarithms in which the share was linear, of clocks in documents of earlier versions.
EARLIER, LOGARITHMS = 7, 4


class _Clock(RecordPart):
    record = Clock

    reference: Positive
    least: Positive
    most: Positive
    numbers: Annotated[list[FiniteFloat], Field(min_length=len(CLOCK_MEANS), max_length=EARLIER)]
    middle: Annotated[list[FiniteFloat], Field(min_length=2, max_length=LOGARITHMS)]
    unit: Annotated[list[Positive], Field(min_length=2, max_length=LOGARITHMS)]
    #: Root of the covariance of the numbers, row by row; none in documents of earlier versions.
    doubt: Annotated[list[FiniteFloat], Field(max_length=EARLIER**2)] = Field(default_factory=list)

    def earlier(self) -> bool:
        """Whether it is that of an earlier version.

        Raises
        ------
        InputError : when its lists have other lengths than one of the versions.
        """
        count, found = len(self.numbers), (len(self.middle), len(self.unit))
        if (count, *found) not in ((len(CLOCK_MEANS), 2, 2), (EARLIER, LOGARITHMS, LOGARITHMS)):
            raise InputError(
                f"clock has {count} numbers with {found[0]} and {found[1]} logarithms, "
                f"expected {len(CLOCK_MEANS)} with 2"
            )
        if len(self.doubt) not in (0, count**2):
            raise InputError(f"doubt of clock has {len(self.doubt)} numbers, expected {count**2}")
        return count == EARLIER


class _Power(Part):
    numbers: Annotated[list[FiniteFloat], Field(min_length=len(POWER_MEANS), max_length=len(POWER_MEANS))]
    #: Scales of the process: bend, five lengths, scaling, noise.
    scales: Annotated[list[Positive], Field(min_length=8, max_length=8)]


class MeteredDocument(LearnedPart):
    """A metered predictor: the robust method at the reference clock, and the original runs."""

    method: Literal["metered"] = "metered"
    times: RobustDocument
    #: Runs of the window, oldest first, with settings, joules and users.
    window: list[Row] = Field(min_length=1)
    settings: list[SettingPart] = Field(default_factory=list)
    energies: list[Positive | None]
    users: list[str]
    covers: str
    seen: Count
    clock: _Clock | None
    power: _Power | None
    together: Annotated[float, Field(ge=-1, le=1)]
    since: Annotated[int, Field(ge=0)]

    @staticmethod
    def converted(predictor: MeteredPredictor) -> dict[str, Any]:
        """The predictor of times as its own document, power by its numbers, and what the runs have besides times."""
        power = predictor.state.power
        return {
            "times": RobustDocument.of(predictor.times),
            "energies": [run.energy for run in predictor.window],
            "users": [run.user for run in predictor.window],
            "power": power and _Power(numbers=list(power.numbers), scales=_listed(power.process.scales)),
        }

    def runs(self) -> list[Run]:
        """The runs of the window, as they were."""
        if not len(self.window) == len(self.energies) == len(self.users):
            raise InputError(f"energies and users are not {len(self.window)}, one for each run of window")
        found = []
        bare = runs_of(self.window, self.application, self.cluster, self.settings)
        for run, energy, user in zip(bare, self.energies, self.users, strict=True):
            extra = dict(run.extra) | ({"user": user} if user else {})
            if energy is not None:
                extra |= {"energy": repr(energy)} | ({"energy_covers": self.covers} if self.covers else {})
            found.append(replace(run, extra=MappingProxyType(extra)))
        return found

    def build(self) -> MeteredPredictor:
        """The predictor; the process of power is conditioned again on the window."""
        predictor = MeteredPredictor(self.application, self.cluster, capacity=self.times.capacity)
        runs, times = self.runs(), self.times.build()
        if len(runs) != len(times.window):
            # Earlier versions kept runs, and counted them, whose numbers no times were learned from.
            runs = [run for run in runs if representable(run)]
        if len(runs) != len(times.window):
            raise InputError(f"window has {len(runs)} runs, expected the {len(times.window)} of times")
        predictor.window = RunWindow(runs, self.times.capacity, times.window.seen)
        if self.clock is not None and self.clock.earlier():
            # Its share depended on the loads: it is found again from the runs, and the times with it.
            seen = predictor.window
            predictor.fit(runs).window = seen
            predictor.state = replace(predictor.state, calibration=self.calibration)
            return predictor
        clock: Clock | None = None if self.clock is None else self.clock.build()
        power = None
        if self.power is not None:
            bend, *lengths, scaling, noise = self.power.scales
            known = Scales(bend, tuple(lengths), scaling, noise), self.power.numbers
            power = predictor.power_of(times, clock, known)
            if power is None:
                raise InputError("power is stored, but no run of window has its energy")
        predictor.state = MeteredState(times, clock, power, self.calibration, self.together, self.covers, self.since)
        return predictor


def _listed(scales: Scales) -> list[float]:
    return [scales.bend, *scales.lengths, scales.scaling, scales.noise]
