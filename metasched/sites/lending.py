"""Runs that sites lend each other, so that one that knows little of an application can predict it.

They are the runs of other platforms that a model with few of its own learns with
(:mod:`metasched.predictors.porting.platforms`): the site that borrows predicts, with its own loads and queues.
Users and nodes of the runs are not passed on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from metasched.advised_placements import Fraction, SettingsAsked
from metasched.placement.clusters.constraints import Count, Name
from metasched.predictors.porting.platforms import LENDS
from metasched.predictors.robust.known_runs import borrowed
from metasched.records import InputError, Run
from monitors.validated_fields import Positive

#: The newest runs of a site that are asked for, and how long the answer is remembered (s).
NEWEST, REMEMBERED = 500, 600.0


class LentRun(SettingsAsked):
    """A run on a platform of another site; a minimum that was not measured is null or left out."""

    cluster: Name
    problem_size: Positive
    processors: Count
    min_avg_avail_cpu: Fraction | None = None
    min_avg_avail_bw: Positive | None = None
    execution_time: Positive

    def run(self, application: str) -> Run:
        """The run as models learn it.

        Raises
        ------
        InputError : when there can be none such.
        """
        fields = self.model_dump(exclude=set(SettingsAsked.model_fields))
        fields |= {name: math.nan for name in ("min_avg_avail_cpu", "min_avg_avail_bw") if fields[name] is None}
        return Run(application, **fields, extra=MappingProxyType(self.settings.cells))


def runs_in(answer: Any, site: str, application: str) -> tuple[Run, ...]:
    """The runs in a site's answer to ``GET /v1/runs`` that others may learn from; what is not sound is left out.

    Parameters
    ----------
    answer : the document that the site's daemon answered.
    site : its name, which its platforms get, since those of other sites may be called alike.
    application : that was asked for.

    Examples
    --------
    >>> row = {"cluster": "c8", "problem_size": 900, "processors": 4, "execution_time": 12.5, "learnable": True}
    >>> [run.cluster for run in runs_in({"runs": [row, row | {"processors": -1}, 7]}, "east", "cg")]
    ['east/c8']
    """
    rows = answer.get("runs") if isinstance(answer, dict) else None
    found = []
    for row in rows[-NEWEST:] if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("learnable") is True:
            known = {name: row[name] for name in LentRun.model_fields if name in row}
            try:
                lent = LentRun.model_validate(known)
                found.append(lent.model_copy(update={"cluster": f"{site}/{lent.cluster}"[:255]}).run(application))
            except (ValidationError, InputError, TypeError):
                continue
    return tuple(found)


def lent_to(site: str, runs: Mapping[str, Sequence[Run]]) -> tuple[Run, ...]:
    """The runs of the others that a site is lent: from each platform as many, as many in all as a model counts with.

    Parameters
    ----------
    site : that borrows.
    runs : of each site by its name.
    """
    of_platform: dict[str, list[Run]] = {}
    for name, known in runs.items():
        for run in known if name != site else ():
            of_platform.setdefault(run.cluster, []).append(run)
    return borrowed((run for known in of_platform.values() if len(known) >= LENDS for run in known), own=0)


def lent_document(run: Run) -> dict[str, Any]:
    """A run as a question lends it."""
    minima = {name: getattr(run, name) for name in ("min_avg_avail_cpu", "min_avg_avail_bw")}
    return {
        "cluster": run.cluster, "problem_size": run.problem_size, "processors": run.processors,
        **{name: None if math.isnan(value) else value for name, value in minima.items()},
        "execution_time": run.execution_time, **run.settings.as_dict(),
    }  # fmt: skip
