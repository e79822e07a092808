"""The terms of recorded jobs as models say them that were fitted to other runs, as the ranker asks for them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.contention.judge import BANDWIDTH, CoRun
from benchmarks.testbed.catalogue import JUDGED
from metasched.predictors.abilities import computing_share
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.runs import read_runs

#: Where campaigns of an application may have been run, on its own cluster or on one to borrow from.
LOADINGS = ("random", "grid")


@cache
def model(application: str, cluster: str) -> Predictor | None:
    """A model of an application on a cluster, from judged campaigns; from another cluster's with idle runs of this one.

    None where no campaign is of the application.
    """
    if (folder := _campaign(application, cluster)) is not None:
        return RobustPredictor(application, cluster).fit(read_campaign(folder).runs)
    idle = JUDGED.folder / "porting" / f"{application}-{cluster}.csv"
    if (folder := _campaign(application, "intel")) is None or not idle.exists():
        return None
    lender = RobustPredictor(application, "intel").fit(read_campaign(folder).runs)
    return RobustPredictor(application, cluster).borrowing(lender.teaching).fit(read_runs(idle))


def _campaign(application: str, cluster: str) -> Path | None:
    folders = (JUDGED.folder / f"{application}-{cluster}-{loading}" for loading in LOADINGS)
    return next((folder for folder in folders if folder.is_dir()), None)


def with_fitted_terms(run: CoRun) -> CoRun | None:
    """The co-run as models describe it: both terms and time alone of each job; None where one has no model."""
    computation, communication, alone = run.computation.copy(), run.communication.copy(), run.alone_time.copy()
    for job, (application, size) in enumerate(zip(run.applications, run.sizes, strict=True)):
        found = model(application, run.name)
        if found is None:
            return None
        asked = size, int(run.processes[job].sum()), 1.0, BANDWIDTH[run.name]
        alone[job] = found.expect_many(*asked)[0]
        share = computing_share(found, *asked)[0]
        computation[job] = np.where(run.processes[job] > 0, share * alone[job], 0.0)
        communication[job] = (1.0 - share) * alone[job]
    return replace(run, computation=computation, communication=communication, alone_time=alone)
