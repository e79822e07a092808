"""Where a job is submitted: where it is done first, by the waits there and what the daemon predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from metasched.client.completion import estimates
from metasched.client.connection import DeniedError
from metasched.client.submission import choose
from metasched.history.queue import QueuedJob
from metasched.placement.clusters.partition import Holder, JobLimits, Partition
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.records import InputError, Settings
from metasched.schedulers.submission import JobRequest

MARK = "metasched:app=cg,n=1400"


class Cluster:
    """A cluster with partitions of so many free processors, some of which a job keeps for 50 s more."""

    def __init__(self, name: str, *, fault: str = "", busy: tuple[str, ...] = (), **free: int) -> None:
        self.name, self.fault, self.busy = name, fault, busy
        self.all = [
            Partition(ClusterState.make(f"{name}/{part}", [part], processors=0 if part in busy else count), name, name,
                      part, total=count)
            for part, count in free.items()
        ]  # fmt: skip

    def partitions(self) -> list[Partition]:
        if self.fault:
            raise RuntimeError(self.fault)
        return self.all

    def queue(self) -> list[QueuedJob]:
        return [QueuedJob("1", frozenset([each]), 8, 90.0, ran=40.0, nodes=(each,)) for each in self.busy]


class Daemon:
    """A daemon with a time for each partition and platform; one it has none for it has no model of."""

    def __init__(self, *clusters: Cluster, **times: float) -> None:
        self.times, self.asked = times, []
        self.parts = {part.state.name: part for each in clusters for part in each.all}

    def __call__(self, method: str, path: str, document: Any) -> Any:
        self.asked.append((path, document))
        if path == "/v1/placements":
            time = self.times.get(document["partitions"][0])
            placement = None if time is None else {"execution_time": time}
            return {"placed": time is not None, "placement": placement, "nodes": "n1"}
        if not self.times:
            raise InputError("no model")
        return {
            "clusters": {name: {"scheduler": each.scheduler, "partition": each.name}
                         for name, each in self.parts.items()},
            "later": [{"cluster": name, "wait": 7.0, "execution_time": self.times[each.platform]}
                      for name, each in self.parts.items() if each.platform in self.times],
        }  # fmt: skip


def chosen(
    asked: JobRequest, clusters: list[Cluster], daemon: Daemon
) -> tuple[str, str, list[tuple[str, float, float, str]], str, list[str]]:
    notes: list[str] = []
    found = choose(asked, clusters, daemon, notes.append)  # type: ignore[arg-type]
    compared = [(each.partition, each.wait, each.execution_time, each.nodes) for each in found.estimates]
    return found.source.name, found.partition, compared, found.why_unchanged, notes


FAST, SLOW, DEAD = Cluster("east", fast=8, busy=("fast",)), Cluster("west", slow=8, tiny=2), Cluster("dead", fault="no")


@pytest.mark.parametrize(
    ("request_", "clusters", "times", "expected"),
    [
        (JobRequest(MARK, 4, ()), [FAST, SLOW], {"east": 30.0, "slow": 100.0},
         ("east", "fast", [("fast", 50.0, 30.0, ""), ("slow", 0.0, 100.0, "n1")], "", [])),
        (JobRequest(MARK, 4, ()), [FAST, SLOW], {"east": 60.0, "slow": 100.0},
         ("west", "slow", [("slow", 0.0, 100.0, "n1"), ("fast", 50.0, 60.0, "")], "", [])),
        (JobRequest(MARK, 2, ("slow", "tiny")), [SLOW], {"slow": 100.0, "tiny": 90.0},
         ("west", "tiny", [("tiny", 0.0, 90.0, "n1"), ("slow", 0.0, 100.0, "n1")], "", [])),
        (JobRequest(MARK, 2, ("slow",)), [DEAD, SLOW], {"slow": 100.0},
         ("west", "", [("slow", 0.0, 100.0, "n1")], "", ["dead is left out: no"])),
        (JobRequest(f"{MARK},p=8", 1, ()), [SLOW], {"west": 70.0},
         ("west", "slow", [("slow", 0.0, 70.0, "")], "", [])),
        (JobRequest(MARK, 9, ()), [SLOW], {},
         ("west", "", [], "no partition that is open to the job has 9 processors", [])),
        (JobRequest(MARK, 2, ("other",)), [SLOW], {}, ("west", "", [], "no partition is open to the job", [])),
        (JobRequest(MARK, 2, ()), [DEAD], {}, ("dead", "", [], "no", ["dead is left out: no"])),
        (JobRequest(MARK, 2, ()), [SLOW], {}, ("west", "", [], "the daemon has no model of the application", [])),
        (JobRequest("night", 2, ()), [DEAD, SLOW], {},
         ("west", "", [], "its comment does not name its application, expected metasched:app=NAME,n=SIZE",
          ["dead is left out: no"])),
        (JobRequest(MARK, 2, (), devices=True), [DEAD], {},
         ("dead", "", [], "it asks for GPUs or other generic resources", [])),
    ],
)  # fmt: skip
def test_a_job_goes_where_it_is_done_first_or_as_it_says(
    request_: JobRequest, clusters: list[Cluster], times: dict[str, float], expected: tuple[Any, ...]
) -> None:
    assert chosen(request_, clusters, Daemon(*clusters, **times)) == expected


STATED = {"processes_per_node": 2, "threads": 2, "parameters": {"solver": "amg", "steps": 100.0}}


def test_a_job_is_predicted_with_its_parameters_and_its_layout() -> None:
    daemon = Daemon(FAST, SLOW, east=30.0, slow=100.0)
    layout = Settings(processes_per_node=2, threads=2)
    chosen(JobRequest(f"{MARK},steps=100,solver=amg", 4, (), layout=layout), [FAST, SLOW], daemon)
    assert [path for path, _ in daemon.asked] == ["/v1/placements", "/v1/rankings"]
    assert [{name: asked.get(name) for name in STATED} for _, asked in daemon.asked] == [STATED, STATED]
    # Of two processors for each process there are not enough.
    daemon = Daemon(SLOW, slow=100.0)
    assert chosen(JobRequest(MARK, 8, (), layout=layout), [SLOW], daemon)[3] == (
        "no partition that is open to the job has 16 processors"
    )


def test_a_parameter_that_the_daemon_refuses_is_said_and_does_not_count() -> None:
    daemon = Daemon(FAST, SLOW, east=30.0, slow=100.0)

    def refusing(method: str, path: str, document: Any) -> Any:
        if path == "/v1/rankings" and document.get("parameters"):
            raise InputError("parameter 'stpes' is unknown")
        return daemon(method, path, document)

    notes: list[str] = []
    found = choose(JobRequest(f"{MARK},stpes=3", 4, ()), [FAST, SLOW], refusing, notes.append)  # type: ignore[list-item]
    assert [each.execution_time for each in found.estimates] == [30.0, 100.0]
    assert notes == ["the job's parameters do not count: parameter 'stpes' is unknown"]


def test_no_job_is_sent_where_its_user_its_account_or_its_qos_gets_no_processors() -> None:
    cluster = Cluster("west", slow=8, quick=8)
    cluster.all[1] = replace(
        cluster.all[1], limits=lambda holder: JobLimits(processors=0 if holder.account == "bio" else 4)
    )
    daemon = Daemon(cluster, slow=100.0, quick=50.0)
    assert chosen(JobRequest(MARK, 4, ()), [cluster], daemon)[1] == "quick"
    assert chosen(JobRequest(MARK, 5, ()), [cluster], daemon)[1] == "slow"
    assert chosen(JobRequest(MARK, 4, (), holder=Holder(account="bio")), [cluster], daemon)[1] == "slow"


def test_a_daemon_that_denies_an_answer_is_not_taken_for_one_without_a_model() -> None:
    daemon = Daemon(FAST, SLOW, east=30.0, slow=100.0)

    def denying(method: str, path: str, document: Any) -> Any:
        if path == "/v1/rankings":
            raise DeniedError("too many requests")
        return daemon(method, path, document)

    found = choose(JobRequest(MARK, 4, ()), [FAST, SLOW], denying, [].append)  # type: ignore[list-item]
    assert (found.source.name, found.partition, found.why_unchanged) == ("east", "", "too many requests")


def test_what_the_daemon_is_asked_and_what_it_may_answer() -> None:
    daemon = Daemon(FAST, east=30.0)
    estimates(daemon, "cg", 1400.0, 4, {("east", "fast"): QueueWait.always(50.0), ("gone", "p"): QueueWait.always(0.0)})
    job = {"application": "cg", "problem_size": 1400.0, "processors": [4]}
    assert daemon.asked == [
        ("/v1/placements", job | {"scheduler": "gone", "partitions": ["p"], "trial": True}),
        ("/v1/rankings", job | {"later": True, "top": 1}),
    ]
    for wrong in (0.0, -1.0, float("inf"), float("nan"), True, "5", None):
        with pytest.raises(ValueError, match="is not a time, expected a number of seconds"):
            estimates(Daemon(FAST, east=wrong), "cg", 1400.0, 4, {("east", "fast"): QueueWait.always(50.0)})  # type: ignore[arg-type]
    for time in (5, 1e-9):
        (found,) = estimates(Daemon(FAST, east=time), "cg", 1.0, 4, {("east", "fast"): QueueWait.always(50.0)})
        assert found.completion == 50.0 + time
