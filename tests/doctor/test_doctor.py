"""The doctor finds what is wrong, one thing at a time, and leaves what is well alone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from metasched.cli import output
from metasched.doctor.daemon import check_agents, check_daemon, check_database, check_socket
from metasched.doctor.findings import Finding, User
from metasched.doctor.lua import LIBRARIES, libraries_of, loadable, lua_error, missing_modules
from metasched.doctor.slurm import check_slurm
from metasched.records import InputError, Load
from metasched.service.configuration import Configuration
from metasched.store.database.store import Store

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
SHARED = [DEPLOYED.parent / "hooks" / f"metasched_{name}.py" for name in ("hooks", "numbers")]
NOW = 1e6
SETTINGS = Configuration.model_validate({"slurm": [{"name": "c8"}]})
#: Only Lua's own library knows its syntax.
needs_lua = pytest.mark.skipif(lua_error(DEPLOYED / "job_submit.lua") is None, reason="Lua's library is not installed")


#: What the daemon says of its health: an earlier one does not say who asks.
HEALTH = {"body": b""}


def answer(listening: socket.socket) -> None:
    """Answer every request on a socket as the daemon does when it is well, until it is closed."""
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(HEALTH["body"])
                connection.sendall(head + HEALTH["body"])


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Path]:
    """Slurm's folder as it should be, SlurmUser being whoever runs this."""
    folder = tmp_path / "slurm"
    shutil.copytree(DEPLOYED, folder)
    for path in SHARED:
        shutil.copy(path, folder)
    (folder / "hooks").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "metasched.sock"))
    listening.listen()
    threading.Thread(target=answer, args=(listening,), daemon=True).start()
    (folder / "hooks.conf").write_text(f"socket = {folder}/metasched.sock\ncluster = c8\nstate = {folder}/hooks\n")
    (folder / "slurm.conf").write_text(
        f"SlurmUser={os.getuid()}\nJobSubmitPlugins=lua\n# a comment\n"
        f"PrologSlurmctld={folder}/metasched-prolog\nEpilogSlurmctld={folder}/metasched-epilog\n"
    )
    yield folder
    listening.close()


def found(folder: Path) -> list[Finding]:
    every = check_slurm("c8", str(folder / "slurm.conf"), f"{folder}/metasched.sock")
    # Whether a controller and Lua's modules are here is the machine's.
    return [each for each in every if "controller" not in each.check and "Lua's" not in each.found]


def wrong(folder: Path) -> set[str]:
    return {each.check.removeprefix("c8: ") for each in found(folder) if each.state != "well"}


def test_an_installation_as_it_should_be_is_well(slurm: Path) -> None:
    assert wrong(slurm) == set()
    assert {each.check for each in found(slurm)} == {
        "c8: hook",
        "c8: hooks.conf",
        "c8: prolog",
        "c8: epilog",
        "c8: undelivered jobs",
    }


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ("", "wrong"),
        ("TaskPlugin=task/none", "wrong"),
        ("TaskPlugin=affinity,cgroup", "watch"),
        ("TaskPlugin=task/cgroup\nLaunchParameters=mpir_use_nodeaddr,batch_step_set_cpu_freq", "well"),
    ],
)
def test_slurm_must_set_the_clocks_that_the_hook_asks_for(lines: str, state: str, slurm: Path) -> None:
    conf = slurm / "slurm.conf"
    conf.write_text(conf.read_text() + lines + "\n")
    every = check_slurm("c8", str(conf), f"{slurm}/metasched.sock", sets_clocks=True)
    assert [each.state for each in every if each.check == "c8: clocks of jobs"] == [state]


@pytest.mark.parametrize(
    ("role", "checks"), [("scheduler", set()), ("admin", set()), ("reader", {"epilog"}), (None, {"epilog"})]
)
def test_a_user_whose_questions_the_daemon_refuses_is_found(
    role: str | None, checks: set[str], slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HEALTH, "body", json.dumps({"status": "ok", "role": role}).encode())
    assert wrong(slurm) == checks
    said = [each.found for each in found(slurm) if each.state == "wrong"]
    assert all(f"takes this for a {role or 'stranger'}, expected a scheduler" in line for line in said)


def test_what_only_root_can_find_out_is_said_to_others(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    unknown = [each for each in found(slurm) if each.state != "well"]
    assert [(each.check, each.state, each.remedy) for each in unknown] == [
        (f"c8: {name}", "watch", "run metasched doctor as root") for name in ("prolog", "epilog")
    ]


def test_who_may_not_enter_the_folder_of_kept_jobs_gets_the_other_findings(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refused)
    assert {each.check for each in found(slurm)} >= {"c8: prolog", "c8: epilog", "c8: undelivered jobs"}


@needs_lua
def test_lua_and_its_modules_are_those_that_slurm_loads(slurm: Path) -> None:
    conf, plugins = slurm / "slurm.conf", slurm / "plugins"
    plugins.mkdir()
    conf.write_text(f"{conf.read_text()}PluginDir={plugins}\n")
    library = next(name for name in LIBRARIES if loadable([name]))
    (plugins / "job_submit_lua.so").write_bytes(f"\0lua_close\0{library}\0x\0liblua9.so\0liblua.so\0".encode())
    assert libraries_of(f"{plugins}") == (library, "liblua9.so", "liblua.so")
    (plugins / "job_submit_lua.so").write_bytes(b"\0liblua9.so\0liblua.so.9\0")
    said = [each for each in check_slurm("c8", str(conf), None) if "Lua's" in each.found]
    assert [each.found for each in said] == ["Lua's library is not installed, expected one of liblua9.so, liblua.so.9"]
    assert missing_modules(library, ("string", "no.such", "table")) == ["no.such"]


@pytest.mark.parametrize(
    ("file", "before", "after", "checks"),
    [
        ("slurm.conf", "JobSubmitPlugins=lua\n", "", {"hook"}),
        ("slurm.conf", "EpilogSlurmctld", "#EpilogSlurmctld", {"epilog"}),
        ("slurm.conf", "SlurmUser=", "SlurmUser=nobody-of-this-name", {"SlurmUser"}),
        ("hooks.conf", "cluster = c8", "cluster = other", {"hooks.conf"}),
        ("hooks.conf", "metasched.sock", "elsewhere.sock", {"hooks.conf", "epilog"}),
        ("hooks.conf", "cluster = c8", "cluster = c8\ndeadline = 30", {"hooks.conf"}),
        ("hooks.conf", "cluster = c8", "cluster = c8\ndeadline = soon", {"hooks.conf"}),
        ("hooks.conf", "/hooks\n", "/nowhere\n", {"undelivered jobs", "epilog"}),
        ("job_submit.lua", None, "return slurm.SUCCESS", {"hook"}),
        pytest.param("job_submit.lua", "local function given", "local fnction given", {"hook"}, marks=needs_lua),
        pytest.param("rules.lua", "return {", "return }", {"hook"}, marks=needs_lua),
        pytest.param("job_numbers.lua", "return {", "return }", {"hook"}, marks=needs_lua),
        ("metasched-epilog", "def ended", "def def ended", {"epilog"}),
        ("metasched_hooks.py", "import json", "import jsn", {"epilog"}),
        ("metasched_numbers.py", "import re", "import ree", {"epilog"}),
        ("metasched-epilog", "/usr/bin/env python3", "/usr/bin/no-such-python", {"epilog"}),
        ("metasched-prolog", "exit 0", "exit 1", {"prolog"}),
        ("metasched-prolog", "date", "no-such-command", {"prolog"}),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(
    file: str, before: str | None, after: str, checks: set[str], slurm: Path
) -> None:
    path = slurm / file
    text = path.read_text()
    path.write_text(after if before is None else text.replace(before, after))
    assert wrong(slurm) == checks
    assert all(each.remedy for each in found(slurm) if each.state != "well")


@pytest.mark.parametrize("writes", [True, False])
def test_the_starts_of_running_jobs_stay_and_stand_for_no_other(writes: bool, slurm: Path) -> None:
    starts = {name: f"{at}.5" for at, name in enumerate(("start.c8.10", "start.c8.7", "start.c9.200", "start.30"))}
    for name, text in starts.items():
        (slurm / "hooks" / name).write_text(text)
    prolog = slurm / "metasched-prolog"
    prolog.write_text(prolog.read_text().replace("date", "date" if writes else "no-such-command"))
    assert wrong(slurm) == (set() if writes else {"prolog"})
    assert {path.name: path.read_text() for path in (slurm / "hooks").glob("start.*")} == starts


def test_what_the_hook_loads_must_be_there_and_older_hooks_load_less(slurm: Path) -> None:
    (slurm / "job_numbers.lua").unlink()
    (finding,) = [each for each in found(slurm) if each.state != "well"]
    assert (finding.check, finding.remedy.partition(",")[0]) == ("c8: hook", "copy deploy/slurm/job_numbers.lua there")
    hook = slurm / "job_submit.lua"
    hook.write_text(hook.read_text().replace("job_numbers.lua", ""))
    assert wrong(slurm) == set()


@pytest.mark.parametrize(("kept", "missing"), [(True, "prolog"), (False, "epilog")])
def test_undelivered_jobs_are_looked_for_where_the_epilog_is_set(kept: bool, missing: str, slurm: Path) -> None:
    conf = slurm / "slurm.conf"
    conf.write_text(conf.read_text().replace(f"{missing.title()}Slurmctld", f"#{missing}"))
    assert wrong(slurm) == {missing}
    assert ("c8: undelivered jobs" in {each.check for each in found(slurm)}) == kept


@pytest.fixture
def beside_own(slurm: Path) -> Path:
    """Slurm's folder where the site's own hooks call those of metasched, in a folder below."""
    own = slurm / "metasched"
    own.mkdir()
    hooks = "job_submit.lua", "job_numbers.lua", "rules.lua", "hooks.conf", "metasched-prolog", "metasched-epilog"
    for name in (*hooks, *(path.name for path in SHARED)):
        (slurm / name).rename(own / name)
    (slurm / "job_submit.lua").write_text(f'pcall(dofile, "{own}/job_submit.lua")\nreturn slurm.SUCCESS\n')
    for kind in ("prolog", "epilog"):
        (slurm / kind).write_text(f"#!/bin/sh\n{own}/metasched-{kind} || true\n")
        (slurm / kind).chmod(0o755)
    conf = slurm / "slurm.conf"
    conf.write_text(conf.read_text().replace("metasched-", ""))
    return slurm


def test_a_sites_own_hooks_that_call_metascheds_are_well_and_others_are_not(beside_own: Path) -> None:
    assert wrong(beside_own) == set()
    (beside_own / "epilog").write_text("#!/bin/sh\n# /etc/slurm/metasched-epilog\n")
    assert wrong(beside_own) == {"epilog"}


def test_a_hook_that_a_sites_own_calls_must_be_executable(beside_own: Path) -> None:
    called = beside_own / "metasched" / "metasched-epilog"
    called.chmod(0o644)
    (finding,) = [each for each in found(beside_own) if each.state != "well"]
    assert (finding.check, finding.remedy.rpartition(": ")[2]) == ("c8: epilog", f"chmod 0755 {called}")


@needs_lua
def test_the_syntax_of_metascheds_script_is_checked_beside_a_sites_own_hook(beside_own: Path) -> None:
    (beside_own / "metasched" / "job_submit.lua").write_text("local x = = 1 -- /v1/placements\n")
    assert wrong(beside_own) == {"hook"}


@pytest.mark.parametrize(("name", "checks"), [("job_submit.lua", {"hook"}), ("metasched-prolog", {"prolog"})])
def test_a_file_that_is_missing_is_named(name: str, checks: set[str], slurm: Path) -> None:
    (slurm / name).unlink()
    assert wrong(slurm) == checks


@pytest.mark.parametrize("setting", ["", "off = {folder}/stop\n"])
def test_hooks_that_are_switched_off_are_to_be_watched(setting: str, slurm: Path) -> None:
    with (slurm / "hooks.conf").open("a") as conf:
        conf.write(setting.format(folder=slurm))
    assert wrong(slurm) == set()
    off = slurm / ("stop" if setting else "metasched.off")
    off.touch()
    (finding,) = [each for each in found(slurm) if each.state != "well"]
    assert (finding.check, finding.state, finding.remedy) == ("c8: hooks.conf", "watch", f"remove it: rm {off}")


def test_a_canary_is_shown(slurm: Path) -> None:
    with (slurm / "hooks.conf").open("a") as conf:
        conf.write("canary_users = ann\n")
    assert any("canary_users = ann" in each.found for each in found(slurm) if each.state == "well")


def test_jobs_that_wait_to_be_told_of_are_to_be_watched(slurm: Path) -> None:
    (slurm / "hooks" / "ended.7.1.5.json").write_text("{}")
    assert [each.state for each in found(slurm) if each.check == "c8: undelivered jobs"] == ["watch"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_rights_are_those_of_the_user_and_not_of_whoever_asks(tmp_path: Path) -> None:
    nobody = User.named("nobody")
    folder = tmp_path / "closed"
    folder.mkdir()
    path = folder / "file"
    path.touch()
    for above in tmp_path.parents:
        if above.owner() == "root" and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o001)
    tmp_path.chmod(0o755)
    folder.chmod(0o750)
    assert str(folder) in nobody.may(path, "r")
    folder.chmod(0o755)
    path.chmod(0o640)
    assert "read it" in nobody.may(path, "r")
    os.chown(path, 0, min(nobody.groups))
    assert nobody.may(path, "r") == ""
    assert nobody.may(path, "rw") != ""
    assert "no such file" in nobody.may(folder / "none", "r")


def states(findings: Any) -> dict[str, str]:
    return {each.check: each.state for each in findings}


def test_a_database_is_checked_without_being_made_or_changed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    assert states(check_database(str(path))) == {"database": "wrong"}
    assert not path.exists()
    settings = SETTINGS.model_copy(update={"database": str(path)})
    assert list(check_agents(settings, ["n0"], NOW)) == []
    assert not path.exists()
    path.write_bytes(b"not a database" * 100)
    assert states(check_database(str(path))) == {"database": "wrong"}
    path.unlink()
    with Store.open(path):
        pass
    assert states(check_database(str(path))) == {"database": "well"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_database_that_root_makes_is_the_folders_owners_and_one_that_is_not_is_found(tmp_path: Path) -> None:
    path, nobody = tmp_path / "m.db", User.named("nobody")
    os.chown(tmp_path, nobody.uid, -1)
    for above in tmp_path.parents:
        if above.owner() == "root" and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o001)
    with Store.open(path) as store:
        store.tokens.add("admin", "admin")
        assert {each.owner() for each in tmp_path.iterdir()} == {"nobody"}
    assert states(check_database(str(path))) == {"database": "well"}
    os.chown(path, 0, -1)
    (answer,) = check_database(str(path))
    assert (answer.state, "belongs to root" in answer.found, "chown nobody" in answer.remedy) == ("wrong", True, True)


def test_agents_that_are_silent_or_whose_clocks_run_ahead_are_found(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"database": str(tmp_path / "m.db")})
    with Store.open(tmp_path / "m.db") as store:
        store.tokens.add("n0", "agent", node="n0")
        store.loads.add([Load(NOW - 10, "n0", 0.5, 90.0)])
    assert states(check_agents(settings, ["n0"], NOW)) == {"tokens": "well", "clocks": "well", "agents": "well"}
    assert states(check_agents(settings, ["n0"], NOW + 1000))["agents"] == "wrong"
    # What was seen 10 s ago is ahead of this host's clock by 1.5 s, by 2.5 s, and by far.
    ahead = [states(check_agents(settings, ["n0"], NOW - 10 - seconds))["clocks"] for seconds in (1.5, 2.5, 90.0)]
    assert ahead == ["well", "wrong", "wrong"]
    (never,) = (each for each in check_agents(settings, ["n0", "n1"], NOW) if each.state == "wrong")
    assert ("n1" in never.found, "--node n1" in never.remedy) == (True, True)


def test_a_daemon_that_does_not_hear_its_scheduler_is_found() -> None:
    fields = {"version": "1", "mode": "act", "sources": {"c8": 5.0}, "releases": ["c8"], "learning_failures": 0}
    assert set(states(check_daemon(SETTINGS, lambda path: fields)).values()) == {"well"}
    assert states(check_daemon(SETTINGS, lambda path: fields | {"sources": {"c8": 5000.0}}))["scheduler c8"] == "wrong"
    assert states(check_daemon(SETTINGS, lambda path: fields | {"learning_failures": 2}))["learning"] == "watch"
    assert states(check_daemon(SETTINGS, lambda path: fields | {"releases": []}))["steering c8"] == "watch"
    by_features = SETTINGS.model_copy(update={"steer": "features"})
    assert "steering c8" not in states(check_daemon(by_features, lambda path: fields | {"releases": []}))
    source = {"name": "P", "age": 5.0, "period": 15.0, "nodes": 4, "fault": ""}
    for change, state in (({}, "well"), ({"age": None}, "wrong"), ({"age": 61.0}, "wrong"), ({"fault": "no"}, "wrong")):
        found = states(check_daemon(SETTINGS, lambda path, change=change: fields | {"load_sources": [source | change]}))
        assert found["source P"] == state

    def down(path: str) -> Any:
        raise RuntimeError("does not answer")

    assert states(check_daemon(SETTINGS, down)) == {"daemon": "wrong"}

    def closed(path: str) -> Any:
        raise InputError("a token is required")

    assert states(check_daemon(SETTINGS, closed)) == {"daemon": "wrong"}


def test_listening_to_others_without_tls_is_wrong() -> None:
    open_to_all = Configuration.model_validate({"listen": {"host": "0.0.0.0"}})
    assert states(check_socket(open_to_all)) == {"TLS": "wrong"}
    assert states(check_socket(Configuration())) == {}


def test_what_the_doctor_says_is_shown_whole_however_narrow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.out, "width", 70)
    configuration = tmp_path / "metasched.toml"
    configuration.write_text('database = "m.db"\n[[slurm]]\nname = "c8"\nconfiguration = "/nowhere/slurm.conf"\n')
    out = call(capsys, "doctor", "--config", str(configuration))[1]
    assert "…" not in out
    assert "[[slurm]]" in "".join(out.split())


def test_the_verb_tells_in_json_and_leaves_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "metasched.toml"
    configuration.write_text('database = "m.db"\n[listen]\nsocket = "nobody.sock"\n')
    status, out, _ = call(capsys, "doctor", "--config", str(configuration), "--json")
    output = json.loads(out)
    assert status == 1
    assert {each["check"]: each["state"] for each in output} == {
        "database": "wrong",
        "daemon": "wrong",
        "socket": "wrong",
    }
