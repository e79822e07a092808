"""The report of an evaluation: what was judged, and what came of it, with the peers beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metasched.predictors.judging.evaluation import Evaluation, Outcome
from metasched.predictors.judging.groups import Group


@dataclass(frozen=True)
class Report:
    """How a method did on the groups of a campaign.

    Parameters
    ----------
    method : its name.
    own : its outcomes.
    judged : the groups that were judged, in the order of the outcomes.
    left : those with runs to predict that could not be judged.
    peers : outcomes of other methods on the groups that have training runs, by name.
    reason : for the choice of a model that represents several; empty where there was none to choose.

    Examples
    --------
    >>> from metasched.records import Interval, Prediction, Run
    >>> run = Run("cg", "c8", 100, 2, 1.0, 90.0, 10.0)
    >>> own = Evaluation((Outcome(run, Prediction(11.0, Interval(9.0, 12.0, 0.9), "m")),))
    >>> document = Report("robust", own, [Group("cg", "c8", (), (run,))]).document()
    >>> document["application"], document["predictions"], round(document["ppe_mean"], 6)
    ('cg', 1, 10.0)
    """

    method: str
    own: Evaluation
    judged: Sequence[Group]
    left: Sequence[Group] = ()
    peers: Mapping[str, Evaluation] = field(default_factory=dict)
    reason: str = ""

    @property
    def applications(self) -> str:
        """The names of the judged applications, separated by commas."""
        return ", ".join(dict.fromkeys(group.application for group in self.judged))

    @property
    def platforms(self) -> str:
        """The names of the platforms on which they were judged, likewise."""
        return ", ".join(dict.fromkeys(group.cluster for group in self.judged))

    def document(self, **conditions: Any) -> dict[str, Any]:
        """The report as a document for JSON.

        Parameters
        ----------
        conditions : of the evaluation, which stand behind the names.
        """
        return {
            "application": self.applications,
            "cluster": self.platforms,
            "method": self.method,
            **conditions,
            "predictions": len(self.own.outcomes),
            **self.own.summary(),
            **({"reason": self.reason} if self.reason else {}),
            "series": [_outcome(one) for one in self.own.outcomes],
            "peers": {name: evaluation.summary() for name, evaluation in self.peers.items()},
            "evaluated": [self._group(group) for group in self.judged],
            "not_evaluated": [
                {"application": group.application, "cluster": group.cluster, "predictions": len(group.rest)}
                for group in self.left
            ],
        }

    def _group(self, group: Group) -> dict[str, Any]:
        of_group = [one for one in self.own.outcomes if (one.run.application, one.run.cluster) == group.key]
        summary = Evaluation(tuple(of_group)).summary()
        del summary["fit_seconds"]
        names = {"application": group.application, "cluster": group.cluster}
        return names | {"training": len(group.training), "predictions": len(of_group), **summary}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    run, prediction = outcome.run, outcome.prediction
    return {
        "application": run.application,
        "cluster": run.cluster,
        "problem_size": run.problem_size,
        "processors": run.processors,
        "execution_time": run.execution_time,
        **({"energy": run.energy} if outcome.quantity == "energy" else {}),
        "predicted": prediction.execution_time,
        "low": prediction.interval.low,
        "high": prediction.interval.high,
        "ppe": outcome.ppe,
    }
