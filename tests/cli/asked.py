"""What verbs answer that ask a daemon, which :mod:`tests.cli.test_whole_asked` compares with what is written down.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from whole_documents import written_down

from metasched.client import connection
from metasched.records import InputError
from metasched.service.app import make_app
from metasched.sites import ssh
from metasched.sites.grid import Sites
from metasched.sites.settings import SiteTable
from tests.cli.outputs import called, without_words
from tests.service.daemons import running
from tests.sites.answers import answer as site_answer
from tests.sites.answers import placement, waiting
from tests.sites.test_grid import Clock, Daemons
from tests.tracing.programs import script

#: The commands in their order; ``{id}`` is a placement that was asked for before, ``{answer}`` a ranking in a file,
#: ``{job}`` a job; ``touch`` makes a file that the stand-in for ssh looks for.
COMMANDS = Path(__file__).parent / "asked.txt"
#: Names of nodes: among equal ones any is chosen.
NODES = re.compile(r"\b[ew](\d|\[[\d,-]+\])")
#: Keys whose values are others each time.
CHANGING = frozenset({
    "age", "asked", "compared", "database", "id", "made_at", "nodes", "saved_at", "set_at", "sources", "start_time",
    "uid", "up", "version",
})  # fmt: skip


def site(*placements: Any, **fields: Any) -> Callable[[str, Any], Any]:
    """A site whose ranking is always the same, and where what was sent waits for an hour."""
    wait = {"state": "waiting", "wait": 3600.0, "low": 3600.0, "high": 3700.0}
    return lambda path, document: wait if path.startswith("/v1/waits") else site_answer(*placements, **fields)


#: What each site of the grid answers.
SITES = {
    "far": RuntimeError("the daemon does not answer"), "near": site(placement(time=100.0)),
    "late": site(later=[waiting()]),
}  # fmt: skip
#: Stands in for ssh: the queue of a site lies in a file, and one job is in it.
SSH = """
for LAST in "$@"; do :; done
echo "$LAST" >>said
case "$LAST" in
  *scontrol*hold*) echo "17|PENDING|JobHeldUser|solve" >queue ;;
  *scontrol*release*) echo "17|PENDING|Priority|solve" >queue ;;
  *scancel*) echo "17|CANCELLED|None|solve" >queue ;;
  *sbatch*)
    [ -e lost ] && exit 255
    [ -e refused ] && { echo full >&2; exit 3; }
    echo 17; echo "17|PENDING|JobHeldUser|solve" >queue ;;
  *squeue*) cat queue ;;
esac
"""
#: A job as it is submitted to sites.
JOB = "-n 4 -J solve --comment=metasched:app=cg,n=1400 job.sh"
CG = {"application": "cg", "problem_size": 1400, "processors": [2]}


def lasting(part: Any) -> Any:
    """A document without what is another each time."""
    if isinstance(part, dict):
        # How long a site took to answer changes, too.
        changing = CHANGING | ({"seconds"} if "fault" in part else set())
        return {key: lasting(value) for key, value in part.items() if key not in changing}
    if isinstance(part, list):
        return [lasting(each) for each in part]
    return NODES.sub("?", part) if isinstance(part, str) else part


def outputs() -> dict[str, Any]:
    """Of each command the status, what it prints and says, and how many lines."""
    found: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running(Path(folder), mode="act") as daemon,
        pytest.MonkeyPatch.context() as patch,
    ):
        daemon.work.stop()
        token = daemon.store.tokens.add("admin", "admin")
        daemon.access.refresh()
        clock = Clock()
        tables = [SiteTable(name=name, url="http://x.invalid", ssh=name * (name != "far")) for name in SITES]
        daemon.sites = Sites(tables, "0.1.0", ask=Daemons(**SITES), now=clock, rested=-1.0)
        client = TestClient(make_app(daemon), headers={"Authorization": f"Bearer {token}"})

        def ask(address: str, method: str, path: str, document: Any = None, **_: Any) -> Any:
            answer = client.request(method, path, json=document)
            if answer.status_code >= 500:
                raise connection.DaemonError(str(answer.json()["detail"]))
            if answer.status_code >= 400:
                raise InputError(str(answer.json()["detail"]))
            return answer.json()

        patch.setattr(connection, "ask", ask)
        patch.chdir(folder)
        patch.setenv("METASCHED_CONFIG", str(Path(folder, "metasched.toml")))
        patch.setenv("COLUMNS", "120")
        patch.setenv("PATH", folder, prepend=os.pathsep)
        patch.setenv("XDG_STATE_HOME", folder)
        ids = itertools.count(1)
        patch.setattr(ssh, "bring", lambda *words: (2.0, 16.0))
        patch.setattr("secrets.token_hex", lambda size: f"{next(ids):x}".ljust(2 * size, "0"))
        for name, text in (("metasched.toml", ""), ("data", 4096 * "x")):
            Path(name).write_text(text, encoding="utf-8")
        for name, lines in (("ssh", SSH), ("job.sh", "true")):
            script(Path(name), lines)
        Path("answer.json").write_text(json.dumps(ask("", "POST", "/v1/rankings", CG | {"top": 3})), encoding="utf-8")
        uid = ask("", "POST", "/v1/placements", CG)["id"]
        for line in COMMANDS.read_text(encoding="utf-8").splitlines():
            if line.startswith("touch "):
                Path(line.removeprefix("touch ")).touch()
                continue
            clock.now += 150.0
            status, printed, said = called(line.format(id=uid, answer="answer.json", job=JOB).split())
            document = json.loads(printed) if "--json" in line and printed else printed.replace(uid, "")
            said = "".join(each for each in said.splitlines(keepends=True) if each.startswith("metasched: "))
            lines = [len(text.splitlines()) for text in (printed, said)]
            found[line] = [status, without_words(lasting(document)), without_words(lasting(said)), lines]
    return found


if __name__ == "__main__":
    print(written_down(outputs(), 6))
