"""The daemons that the commands of a page ask: ``metasched serve``, at a Unix socket in the page's folder."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasched.client.connection import ask
from metasched.fitting import fit
from metasched.store import documents
from metasched.store.database.store import Store
from tests.service.daemons import CLUSTERS, runs, seconds

#: The first finished job ends so long before now (s).
AGO = 4000.0


@contextmanager
def serving(folder: Path, *, jobs: int = 0) -> Iterator[None]:
    """A daemon of two partitions of four nodes, east and west, that has learned 40 runs of cg on each.

    Whoever asks metasched asks this one, and administers it. It has placed a job, whose id is in ``$PLACEMENT``.

    Parameters
    ----------
    jobs : how many jobs have ended that it gave advice for; all ran in west, which has half its processors to spare.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("METASCHED_CONFIG", "metasched.toml")
        patch.delenv("METASCHED_TOKEN", raising=False)
        Path("partitions.toml").write_text(CLUSTERS)
        Path("metasched.toml").write_text(
            'database = "daemon.db"\nclusters = "partitions.toml"\n[listen]\nport = 0\nsocket = "metasched.sock"\n'
        )
        with Store.open("daemon.db") as store:
            for cluster in ("east", "west"):
                store.runs.add_all(made := runs(cluster))
                document = json.loads(documents.dump(fit(store.runs.learnable(platform=cluster), "published")))
                store.models.save("cg", cluster, document, learned=[record.uid for record in made])
            Path("admin.token").write_text(store.tokens.add("admin", "admin"))
        with Path("log").open("w") as log:
            process = subprocess.Popen([sys.executable, "-m", "metasched", "serve"], stdout=log, stderr=log)
        try:
            say = partial(ask, "metasched.sock")
            while not healthy(say):
                assert process.poll() is None, Path("log").read_text()
                time.sleep(0.1)
            for number in range(jobs):
                finish(say, number)
            question = {"application": "cg", "problem_size": 1400, "max_processors": 8}
            patch.setenv("PLACEMENT", say("POST", "/v1/placements", question)["id"])
            yield
        finally:
            process.terminate()
            process.wait(30)


def healthy(say: Callable[..., Any]) -> bool:
    """Whether the daemon answers."""
    try:
        return bool(say("GET", "/v1/health"))
    except RuntimeError:
        return False


def finish(say: Callable[..., Any], number: int) -> None:
    """One job that asks where to run, and then runs on two free nodes of west."""
    size, processors, end = 600 + 100 * (number % 8), 4, time.time() - AGO + 60 * number
    placed = say("POST", "/v1/placements", {"application": "cg", "problem_size": size, "processors": [processors]})
    node = f"w{1 + number % 4}"
    taken = seconds(size, processors, 0.5) * (1 + 0.02 * (number % 5 - 2))
    job = {
        "scheduler": "west",
        "job": str(number),
        "comment": f"metasched:app=cg,n={size},p={processors},placement={placed['id']}",
        "nodes": node,
        "processors": processors,
        "start": end - taken,
        "end": end,
    }
    samples = [[end - taken + part * taken / 4, 0.5, 100.0] for part in range(5)]
    say("POST", "/v1/loads", {"node": node, "samples": samples})
    say("POST", "/v1/jobs", job)


DAEMONS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "learned": serving,
    "judged": partial(serving, jobs=30),
}
