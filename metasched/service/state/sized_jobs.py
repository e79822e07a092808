"""Jobs whose problem size is a number that they state, as an administrator has confirmed: runs of an application.

The number stands in their name, their arguments or their script.

What the report on past jobs has found of it stands in the configuration (``problem_size``). From then on such jobs are
learned as if they had been annotated, and once a model knows enough of them it predicts their run times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metasched.history.argument_numbers import SCRIPT
from metasched.history.problem_sizes import SizeRule, told_stem
from metasched.jobs import Mark
from metasched.plain_numbers import number_of
from metasched.records import IDLE_BANDWIDTH, IDLE_CPU, InputError, Request
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Models

#: Runs that a model has learned at least before it predicts instead of the history.
FEWEST_RUNS = 8


class SizedJobs:
    """The problem sizes that jobs state, and the models of such jobs.

    Parameters
    ----------
    rules : that are confirmed; the first that finds a problem size counts.
    models, clusters : that learn such jobs, and where they run.
    """

    def __init__(self, rules: Sequence[SizeRule], models: Models, clusters: LiveClusters) -> None:
        self._rules, self._models, self._clusters = tuple(rules), models, clusters

    @property
    def names(self) -> list[str]:
        """The names of such jobs as hooks tell names, with ``#`` for each number."""
        return sorted({told_stem(rule.name) for rule in self._rules})

    def concerns(self, name: str) -> bool:
        """Whether a job of this name may state its problem size, in its arguments if not in its name."""
        return any(rule.concerns(name) for rule in self._rules)

    def mark(self, name: str, numbers: str, *, script: bool = True) -> Mark | None:
        """What a job is a run of; None where no rule finds a problem size.

        Parameters
        ----------
        name : of the job.
        numbers : in its arguments and script, a text of :mod:`metasched.history.argument_numbers`.
        script : whether its script is seen; else no rule counts after one that might find a number there later.
        """
        for rule in self._rules:
            if (size := rule.of(name, numbers)) is not None:
                return Mark(rule.application, size)
            if not script and rule.place.startswith(SCRIPT) and rule.concerns(name):
                return None
        return None

    def predict(
        self, expected: Mapping[str, Any], name: str, processors: int, *, numbers: str = "", cluster: str | None,
        partition: str, user: str,
    ) -> dict[str, Any]:  # fmt: skip
        """What is expected of a job, by the model of its application where that knows enough.

        Parameters
        ----------
        expected : what its history tells: the document of ``metasched history predict``.
        name, processors, cluster, partition, user : of the job.
        numbers : as in :meth:`mark`.

        Returns
        -------
        dict
            The document, with run time, interval and reason of the model where there is one, cut at the time limit.
        """
        mark = self.mark(name, numbers)
        if mark is None:
            return dict(expected)
        view = self._clusters.view.partitions
        platforms = [each.platform for each in view if cluster in (None, each.scheduler) and each.name == partition]
        platform = platforms[0] if platforms else cluster or ""
        learned = self._models.learned_by((mark.application, platform)).runs
        predictor = self._models.predictor(mark.application, platform, user) if learned >= FEWEST_RUNS else None
        if predictor is None:
            return {
                **expected,
                "reason": f"{expected['reason']} (the model of {mark.application} knows {number_of(learned, 'run')})",
            }
        try:
            found = predictor.predict(Request(mark.problem_size, processors, IDLE_CPU, IDLE_BANDWIDTH))
        except InputError:
            return dict(expected)
        limit = expected["requested_time"]
        interval = {
            "low": min(found.interval.low, limit), "high": min(found.interval.high, limit),
            "level": found.interval.level,
        }  # fmt: skip
        reason = (
            f"the model of {mark.application} for problem size {mark.problem_size:g}, by {number_of(learned, 'run')}"
        )
        return {**expected, "run_time": min(found.execution_time, limit), "interval": interval, "reason": reason}
