"""What was predicted of each application's last runs, beside what they really took."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from metasched.advised_placements import AdvisedPlacement
from metasched.records import Prediction, Run

#: Runs remembered of each application on each platform.
MOST_RUNS = 200

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run and what the model said of it before it learned it: times in seconds."""

    at: float | None
    problem_size: float
    processors: int
    predicted: float
    low: float
    high: float
    actual: float

    @property
    def error(self) -> float:
        """The percentage prediction error: how far the prediction was from the measured time (% of the latter)."""
        return 100.0 * abs(self.predicted - self.actual) / self.actual

    @property
    def inside(self) -> bool:
        """Whether the interval held the outcome."""
        return self.low <= self.actual <= self.high


class RecentPredictions:
    """The last runs of each application on each platform, each predicted before it was learned from, with its loads.

    >>> from metasched.records import Interval
    >>> track = RecentPredictions()
    >>> track.note(Run("cg", "c8", 1400, 4, 0.8, 93.5, 10.0), Prediction(11.0, Interval(9.0, 12.0, 0.9), "a model"))
    >>> [(run.predicted, run.actual, run.inside) for run in track.of("cg", "c8")]
    [(11.0, 10.0, True)]
    """

    def __init__(self) -> None:
        self._runs: dict[Key, deque[JudgedRun]] = {}

    def note(self, run: Run, prediction: Prediction) -> None:
        """Remember a run that is about to be learned, and its prediction."""
        interval = prediction.interval
        self._of((run.application, run.cluster)).append(
            JudgedRun(
                run.start_time, run.problem_size, run.processors, prediction.execution_time, interval.low,
                interval.high, run.execution_time,
            ),
        )  # fmt: skip

    def restore(self, advised: Iterable[AdvisedPlacement]) -> None:
        """Take up finished jobs from before a restart, newest first; they come before what was noted since."""
        for advice in advised:
            outcome = advice.outcome
            if outcome is None or outcome.exit_status != 0 or (said := outcome.predicted) is None:
                continue
            judged = JudgedRun(
                outcome.start, advice.question.problem_size, outcome.processors,
                said.execution_time, said.interval.low, said.interval.high, outcome.execution_time,
            )  # fmt: skip
            kept = self._of((advice.application, outcome.platform))
            if len(kept) < MOST_RUNS:
                kept.appendleft(judged)

    def of(self, application: str, platform: str) -> tuple[JudgedRun, ...]:
        """The last runs of a model with their predictions (s), oldest first."""
        return tuple(self._runs.get((application, platform), ()))

    def _of(self, key: Key) -> deque[JudgedRun]:
        return self._runs.setdefault(key, deque(maxlen=MOST_RUNS))
