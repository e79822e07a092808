"""Flux's frobnicator plugin in a stand-in: what it changes, and that it never raises an exception."""

from __future__ import annotations

import copy
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.flux_stand_in import SPEC, frobbed
from tests.system import bad_daemons
from tests.system.bad_daemons import Bad


def placed(folder: Path, spec: dict[str, Any] = SPEC, conf: str = "", breaks: str = "", **answer: Any) -> Any:
    with closing(Bad(bad_daemons.changed(**answer))) as daemon:
        return frobbed(folder, f"address = {daemon.address}\ndeadline = 2\n{conf}", spec, breaks)


def other(path: str, value: Any) -> dict[str, Any]:
    """The usual job with something else at a path of keys."""
    spec = copy.deepcopy(SPEC)
    *rooms, name = path.split(".")
    inside: Any = spec
    for room in rooms:
        inside = inside[int(room) if room.isdigit() else room]
    inside[name] = value
    return spec


def test_a_job_gets_a_queue_and_its_mark_is_completed(tmp_path: Path) -> None:
    spec = other("attributes.system.queue", "")
    assert placed(tmp_path, spec, "queues = old, new\n") == {
        "system": {"duration": 500, "queue": "new"}, "user": {"metasched": "app=cg,n=1400,p=2,placement=0f"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("attributes.user.metasched", "off"), ("attributes.user.metasched", {"a": 1}), ("attributes.user", {}),
        ("attributes.user.metasched", "app=cg"), ("attributes.system.constraints", {"hostlist": ["n1"]}),
        ("attributes.system.dependencies", [{"scheme": "after"}]), ("attributes.system.queue", ""),
        ("resources", [{"type": "node", "count": 2, "with": []}]), ("resources", []), ("resources.0.count", "2+"),
        ("resources.0.with", [{"type": "core", "count": 1}, {"type": "gpu", "count": 1}]), ("tasks", []),
        ("resources.0.with", [{"type": "core", "count": 4}]), ("attributes.system.duration", {"a": []}),
    ],
    ids=str,
)  # fmt: skip
def test_other_jobs_are_left_alone(path: str, value: Any, tmp_path: Path) -> None:
    spec = other(path, value)
    assert placed(tmp_path, spec) == spec["attributes"]


@pytest.mark.parametrize("breaks", ["system.queue", "user.metasched"])
def test_what_flux_refuses_is_taken_back_altogether(breaks: str, tmp_path: Path) -> None:
    assert placed(tmp_path, breaks=breaks) == SPEC["attributes"]


def test_no_job_is_rejected_though_the_shared_files_are_missing(tmp_path: Path) -> None:
    assert frobbed(tmp_path, "", shared=False) == SPEC["attributes"]
