"""Asks a daemon for one answer of each kind: ``python -m tests.service.api.answers >tests/service/api/answers.json``.

That file is what :mod:`tests.service.api.test_whole_answers` compares with; read its difference before it is kept.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from whole_documents import written_down

from metasched.service.app import make_app
from tests.service.daemons import headers_for, running

#: What an application asks for, and one that no model and no cluster knows.
CG, UNKNOWN = {"application": "cg", "problem_size": 1400}, {"application": "lu", "problem_size": 10}
#: Each question by a name: a path, and a body where it is no plain reading.
QUESTIONS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "health": ("health", None),
    "status": ("status", None),
    "clusters": ("clusters", None),
    "models": ("models", None),
    "applications": ("applications", None),
    "mode": ("mode", None),
    "sites": ("sites", None),
    "loads": ("loads?node=e1&since=0", None),
    "prediction": (
        "predictions",
        CG | {"platform": "east", "processors": 2, "available_cpu": 0.5, "available_bandwidth": 50.0},
    ),
    "ranking": ("rankings", CG | {"processors": [1, 2, 4], "top": 3}),
    "ranking of one": ("rankings", CG | {"processors": [2], "top": 1}),
    "placement": ("placements", CG | {"processors": [2], "trial": True}),
    "no placement": ("placements", CG | {"processors": [64], "trial": True}),
    "placement of what is unknown": ("placements", UNKNOWN | {"processors": [2], "trial": True}),
    "placement under a limit": ("placements", CG | {"processors": [2], "time_limit": 90.0, "trial": True}),
    "ranking by prices": (
        "rankings",
        CG | {"max_processors": 4, "weights": {"core_hours": 30.0, "risk": 1.0}, "saving": 0.1, "top": 2, "level": 0.5},
    ),
    "ranking of what no other beats": ("rankings", CG | {"weights": {"time": 1.0, "core_hours": 60.0}, "pareto": True}),
    "ranking without drained nodes": ("rankings", CG | {"drain": "e[1-3]", "processors": [2], "top": 2}),
    "time limits for a chance": ("walltimes", CG | {"processors": 2, "chance": 0.1, "limit": 30.0}),
    "time limit": ("walltimes", CG | {"platform": "east", "processors": 2}),
}
#: Keys whose values are others each time.
CHANGING = frozenset({"age", "database", "id", "made_at", "saved_at", "sources", "up", "version"})
#: Names of nodes: among equal ones any is placed on.
NODE = re.compile(r"\b([ew])[1-4]\b")
#: Numbers in texts, which are compared as numbers.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def answers() -> dict[str, Any]:
    """The answers of a daemon to all questions, without what is different each time."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running(Path(folder), mode="act") as daemon,
    ):
        daemon.work.stop()
        client = TestClient(make_app(daemon), headers=headers_for(daemon))
        return {
            name: _lasting(client.get(f"/v1/{path}") if body is None else client.post(f"/v1/{path}", json=body))
            for name, (path, body) in QUESTIONS.items()
        }


def _lasting(answer: Any) -> Any:
    def without(part: Any) -> Any:
        if isinstance(part, str):
            text = NODE.sub(r"\1?", part)
            return [NUMBER.sub("#", text), *map(float, NUMBER.findall(text))]
        if isinstance(part, dict):
            return {key: without(value) for key, value in part.items() if key not in CHANGING}
        return [without(each) for each in part] if isinstance(part, list) else part

    return [answer.status_code, without(answer.json())]


if __name__ == "__main__":
    print(written_down(answers(), 9))
