"""Every finding about a daemon, its database, its socket and its agents, word for word, up to each limit."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from metasched.doctor.daemon import check_agents, check_daemon, check_database, check_names, check_socket, load_names
from metasched.doctor.findings import Finding
from metasched.records import Load
from metasched.service.configuration import Configuration
from metasched.store.database.schema import HEAD
from metasched.store.database.store import Store

NOW = 1_000_000.0
WITH = Configuration.model_validate(
    {"slurm": [{"name": "s"}], "grid_engine": [{"name": "g"}], "periods": {"partitions": 20}}
)
ANSWER: dict[str, Any] = {
    "version": "1.2", "mode": "act", "sources": {"s": 5.0, "g": 6.4}, "releases": ["s"], "learning_failures": 0,
}  # fmt: skip
WELL = [
    Finding("scheduler s", "well", "last report 5 s ago"),
    Finding("scheduler g", "well", "last report 6 s ago"),
]
ASK = "see the daemon's log, and check that its user may run sinfo or qstat"
STEERING = Finding(
    "steering s", "watch",
    "the daemon's user may not change waiting jobs, so jobs are steered by features instead of nodes",
    'sacctmgr modify user NAME set adminlevel=Operator, or set steer = "features"',
)  # fmt: skip
SOURCE: dict[str, Any] = {"name": "p", "age": 5.0, "period": 15.0, "nodes": 4, "fault": ""}
TABLE = "check that it is running, and its [[source]] table"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, WELL),
        # Three periods and half a minute are 90 s.
        ({"sources": {"s": 90.0, "g": 90.1}},
         [Finding("scheduler s", "well", "last report 90 s ago"),
          Finding("scheduler g", "wrong", "last report 90 s ago", ASK)]),
        ({"sources": {"g": 6.0}, "releases": []},
         [Finding("scheduler s", "wrong", "no report yet", ASK), WELL[1]]),
        ({"releases": []}, [WELL[0], STEERING, WELL[1]]),
        ({"load_sources": [SOURCE]}, [*WELL, Finding("source p", "well", "last answered 5 s ago, for 4 nodes")]),
        ({"load_sources": [SOURCE | {"age": 60.0, "nodes": 1}]},
         [*WELL, Finding("source p", "well", "last answered 60 s ago, for 1 node")]),
        ({"load_sources": [SOURCE | {"age": 60.1}]},
         [*WELL, Finding("source p", "wrong", "last answered 60 s ago: ", TABLE)]),
        ({"load_sources": [SOURCE | {"age": None, "fault": "refused"}]},
         [*WELL, Finding("source p", "wrong", "never answered: refused", TABLE)]),
        ({"load_sources": [SOURCE | {"fault": "refused"}]},
         [*WELL, Finding("source p", "wrong", "last answered 5 s ago: refused", TABLE)]),
        ({"learning_failures": 1},
         [*WELL, Finding("learning", "watch", "learning failed 1 time", "see the daemon's log for the reasons")]),
        ({"learning_failures": 2},
         [*WELL, Finding("learning", "watch", "learning failed 2 times", "see the daemon's log for the reasons")]),
    ],
)  # fmt: skip
def test_what_a_daemon_answers_of_itself(changes: dict[str, Any], found: list[Finding]) -> None:
    first, *others = check_daemon(WITH, lambda path: {"/v1/status": ANSWER | changes}[path])
    assert (first.check, first.state, first.remedy) == ("daemon", "well", "")
    assert re.fullmatch(r"version 1\.2, mode act, answers in \d+ ms", first.found)
    assert others == found


@pytest.mark.parametrize("steer", ["partition", "features"])
def test_only_who_steers_by_nodes_must_change_waiting_jobs(steer: str) -> None:
    settings = WITH.model_copy(update={"steer": steer})
    assert list(check_daemon(settings, lambda _: ANSWER | {"releases": []}))[1:] == WELL


@pytest.mark.parametrize(
    ("host", "certificate", "found"),
    [
        ("127.0.0.1", None, []),
        ("::1", None, []),
        ("localhost", None, []),
        ("0.0.0.0", "/c.pem", []),
        ("0.0.0.0", None, [
            Finding("TLS", "wrong", "0.0.0.0:8443 receives tokens unencrypted",
                    "set certificate and key under [listen]")
        ]),
    ],
)  # fmt: skip
def test_tokens_go_to_others_only_over_tls(host: str, certificate: str | None, found: list[Finding]) -> None:
    listen = {"host": host, "port": 8443, "certificate": certificate, "key": certificate}
    assert list(check_socket(Configuration.model_validate({"listen": listen}))) == found


def test_a_path_of_a_socket_that_is_none_is_found(tmp_path: Path) -> None:
    place = tmp_path / "d.sock"
    settings = Configuration.model_validate({"listen": {"socket": str(place)}})
    missing = Finding("socket", "wrong", f"{place}: no such file or directory", "start the daemon")
    assert list(check_socket(settings)) == [missing]
    place.write_text("")
    other = Finding("socket", "wrong", f"{place} is not a socket", "remove it and restart the daemon")
    assert list(check_socket(settings)) == [other]


def agents(
    path: Path, loads: dict[str, float], tokens: dict[str, str], nodes: list[str], now: float = NOW
) -> list[Finding]:
    """What is found of nodes whose last loads and whose tokens' roles are given by name."""
    with Store.open(path) as store:
        store.loads.add(Load(at, node, 0.5, 90.0) for node, at in loads.items())
        for name, role in tokens.items():
            store.tokens.add(name, role, node=name if role == "agent" else None)  # type: ignore[arg-type]
    return list(check_agents(Configuration.model_validate({"database": str(path)}), nodes, now))


NONE = Finding("tokens", "watch", "there are no tokens", "create one: `metasched token add NAME --role ROLE`")
SAME = Finding("clocks", "well", "no node's clock is more than 2 s ahead of this host's")
START = "start metasched-agent there"
RECENT = "check `systemctl status metasched-agent` and the clock there"
SYNCHRONISE = "synchronise the clocks of these nodes, with chrony or ntpd"


@pytest.mark.parametrize(
    ("loads", "tokens", "nodes", "found"),
    [
        ({}, {}, [], [NONE]),
        ({"n1": NOW}, {}, ["n1"],
         [NONE, SAME, Finding("agents", "well", "loads of 1 node came in the last 120 s, none are missing")]),
        ({"n1": NOW, "n2": NOW - 120.0}, {"a": "admin", "n1": "agent", "n2": "agent"}, ["n1", "n2"],
         [Finding("tokens", "well", "1 admin, 2 agent"), SAME,
          Finding("agents", "well", "loads of 2 nodes came in the last 120 s, none are missing")]),
        ({"n1": NOW - 121.0, "n2": NOW - 300.0, "n3": NOW}, {}, ["n1", "n2", "n3"],
         [NONE, SAME,
          Finding("agents", "wrong", "no recent loads from n1, n2; the last from n2 are 300 s old", RECENT)]),
        ({"n1": NOW + 2.0, "n2": NOW + 3.0, "n3": NOW + 60.0}, {}, [],
         [NONE, Finding("clocks", "wrong", "n2, n3: ahead of this host's, n3 by 60 s", SYNCHRONISE)]),
        ({}, {"n1": "agent"}, ["n1"],
         [Finding("tokens", "well", "1 agent"),
          Finding("agents", "wrong", "no loads ever from n1, which count as idle", START)]),
        ({"n1": NOW}, {"n2": "agent"}, ["n1", *(f"n{at}" for at in range(2, 9))],
         [Finding("tokens", "well", "1 agent"), SAME,
          Finding("agents", "wrong", "no loads ever from n2, n3, n4, n5, n6 and 2 more, which count as idle",
                  f"{START}, with a token: `metasched token add NAME --role agent --node n3`")]),
        ({}, {}, ["n1", "n2", "n3", "n4", "n5"],
         [NONE, Finding("agents", "wrong", "no loads ever from n1, n2, n3, n4, n5, which count as idle",
                        f"{START}, with a token: `metasched token add NAME --role agent --node n1`")]),
        # What was heard more than thirty days ago is as if it had never been.
        ({"n1": NOW - 30 * 86_400.0}, {"n1": "agent"}, ["n1"],
         [Finding("tokens", "well", "1 agent"),
          Finding("agents", "wrong", "no loads ever from n1, which count as idle", START)]),
    ],
)  # fmt: skip
def test_what_is_heard_of_nodes(
    tmp_path: Path, loads: dict[str, float], tokens: dict[str, str], nodes: list[str], found: list[Finding]
) -> None:
    assert agents(tmp_path / "m.db", loads, tokens, nodes) == found


def test_a_database_is_found_missing_sound_old_and_new(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    missing = Finding("database", "wrong", f"{path} does not exist", "start the daemon, which creates it")
    assert list(check_database(str(path))) == [missing]
    with Store.open(path):
        pass
    assert list(check_database(str(path))) == [Finding("database", "well", f"{path}, schema {HEAD}")]
    for at, remedy in (("0001", "restart the daemon, which upgrades it"), ("9999", "upgrade metasched")):
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE metasched_schema SET version_num = ?", (at,))
        line = f"{path} is at schema {at}, this metasched needs {HEAD}"
        assert list(check_database(str(path))) == [Finding("database", "wrong", line, remedy)]
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM metasched_schema")
    (found,) = check_database(str(path))
    assert (found.found, found.remedy) == (
        f"{path} is at schema none, this metasched needs {HEAD}", "restart the daemon, which upgrades it",
    )  # fmt: skip


def clusters(**nodes: list[str]) -> list[dict[str, Any]]:
    """What the daemon lists, two partitions of each scheduler."""
    return 2 * [{"scheduler": name, "nodes": [{"node": node} for node in own]} for name, own in nodes.items()]


@pytest.mark.parametrize(
    ("settings", "listed", "found"),
    [
        ({}, clusters(west=["n1", "n2"], east=["n3"]), []),
        ({}, clusters(west=["n1", "n2"], east=["n2", "n3"]),
         ["n2: nodes of west and east, whose loads are therefore unknown"]),
        ({"shared_nodes": "n[1-9]"}, clusters(west=["n1", "n2"], east=["n2", "n3"]), []),
        ({"slurm": [{"name": "west", "prefix": "w-"}]}, clusters(west=["n1", "n2"], east=["n2", "n3"]), []),
    ],
)  # fmt: skip
def test_nodes_of_two_schedulers_with_one_name_are_found(
    settings: dict[str, Any], listed: list[dict[str, Any]], found: list[str]
) -> None:
    names = load_names(Configuration.model_validate(settings), listed)
    wrong = list(check_names(names))
    assert [each.found for each in wrong] == found
    assert all("shared_nodes" in each.remedy and "prefix" in each.remedy for each in wrong)
