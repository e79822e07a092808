"""What verbs answer that ask a daemon, which :mod:`tests.cli.test_whole_asked` compares with what is written down.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from whole_documents import written_down

from metasched.client import connection
from metasched.records import InputError
from metasched.service.app import make_app
from tests.cli.outputs import called, without_words
from tests.service.daemons import running

#: The commands in their order; ``{id}`` is a placement that was asked for before, ``{answer}`` a ranking in a file.
COMMANDS = Path(__file__).parent / "asked.txt"
#: Names of nodes: among equal ones any is chosen.
NODES = re.compile(r"\b[ew](\d|\[[\d,-]+\])")
#: Keys whose values are others each time.
CHANGING = frozenset({
    "age", "asked", "compared", "database", "id", "made_at", "nodes", "saved_at", "set_at", "sources", "start_time",
    "uid", "up", "version",
})  # fmt: skip
SITE = {"name": "far", "url": "http://127.0.0.1:9"}
CG = {"application": "cg", "problem_size": 1400, "processors": [2]}


def lasting(part: Any) -> Any:
    """A document without what is another each time."""
    if isinstance(part, dict):
        return {key: lasting(value) for key, value in part.items() if key not in CHANGING}
    if isinstance(part, list):
        return [lasting(each) for each in part]
    return NODES.sub("?", part) if isinstance(part, str) else part


def outputs() -> dict[str, Any]:
    """Of each command the status, what it prints and says, and how many lines."""
    found: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running(Path(folder), mode="act", site=[SITE]) as daemon,
        pytest.MonkeyPatch.context() as patch,
    ):
        daemon.work.stop()
        token = daemon.store.tokens.add("admin", "admin")
        daemon.access.refresh()
        client = TestClient(make_app(daemon), headers={"Authorization": f"Bearer {token}"})

        def ask(address: str, method: str, path: str, document: Any = None, **_: Any) -> Any:
            answer = client.request(method, path, json=document)
            if answer.status_code >= 500:
                raise RuntimeError(str(answer.json()["detail"]))
            if answer.status_code >= 400:
                raise InputError(str(answer.json()["detail"]))
            return answer.json()

        patch.setattr(connection, "ask", ask)
        patch.chdir(folder)
        patch.setenv("METASCHED_CONFIG", str(Path(folder, "metasched.toml")))
        Path("metasched.toml").write_text("", encoding="utf-8")
        Path("answer.json").write_text(json.dumps(ask("", "POST", "/v1/rankings", CG | {"top": 3})), encoding="utf-8")
        uid = ask("", "POST", "/v1/placements", CG)["id"]
        for line in COMMANDS.read_text(encoding="utf-8").splitlines():
            status, printed, said = called(line.format(id=uid, answer="answer.json").split())
            document = json.loads(printed) if "--json" in line and printed else printed.replace(uid, "")
            said = "".join(each for each in said.splitlines(keepends=True) if each.startswith("metasched: "))
            lines = [len(text.splitlines()) for text in (printed, said)]
            found[line] = [status, without_words(lasting(document)), without_words(lasting(said)), lines]
    return found


if __name__ == "__main__":
    print(written_down(outputs(), 6))
