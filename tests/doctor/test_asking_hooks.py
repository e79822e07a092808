"""The doctor finds what is wrong with the hooks of OAR, Flux, HTCondor and OpenPBS, whose commands tests write."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from deployed_files import copy_deployed

from metasched.doctor.findings import Finding, User
from metasched.doctor.flux import check_flux
from metasched.doctor.htcondor import check_htcondor
from metasched.doctor.oar import check_oar
from metasched.doctor.pbs import check_pbs
from tests.doctor.test_doctor import answer
from tests.installation.oar_rules import installed

RESOURCE = {"resource_id": 1, "network_address": "n1", "type": "default", "state": "Alive", "cluster": "new"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for hooks and commands, beside a daemon that answers."""
    copy_deployed(tmp_path, "hooks")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "d.sock"))
    listening.listen()
    threading.Thread(target=answer, args=(listening,), daemon=True).start()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    # Users of schedulers that are not installed: who runs the tests may read what these may.
    me = User.named(f"{os.geteuid()}")
    monkeypatch.setattr(User, "named", classmethod(lambda cls, name: me))
    yield tmp_path
    listening.close()


def hooks(folder: Path, scheduler: str, **changed: str) -> None:
    copy_deployed(folder, scheduler)
    every = {"socket": f"{folder}/d.sock", "cluster": scheduler} | changed
    (folder / "hooks.conf").write_text("".join(f"{key} = {value}\n" for key, value in every.items()))


def command(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def wrong(findings: Iterable[Finding]) -> dict[str, str]:
    return {each.check.partition(": ")[2]: each.found for each in findings if each.state != "well"}


@pytest.fixture
def rules(folder: Path) -> Path:
    """The rules of a server of OAR on which all is well."""
    hooks(folder, "oar", property="cluster")
    command(folder, "oarnodes", f"echo '{json.dumps({'1': RESOURCE})}'")
    found = installed(folder)
    rule = (folder / "admission_rule.pl").read_text().replace("/etc/oar/metasched", str(folder))
    for path in (found / "2", folder / "admission_rule.pl"):
        path.write_text(rule)
    return found


def of_oar(folder: Path, attribute: str = "cluster") -> dict[str, str]:
    return wrong(check_oar("oar", attribute, f"{folder}/d.sock"))


def test_where_all_is_well_with_oar_it_says_so(rules: Path, folder: Path) -> None:
    assert of_oar(folder) == {}
    checks = [each.check for each in check_oar("oar", "cluster", f"{folder}/d.sock")]
    assert checks == ["oar: server", "oar: rule", "oar: hooks.conf", "oar: hook"]


def test_a_rule_of_oar_that_is_missing_twice_there_disabled_or_another_is_found(rules: Path, folder: Path) -> None:
    text = (rules / "2").read_text()
    (rules / "2.off").touch()
    assert of_oar(folder) == {"rule": "rule 2 is disabled"}
    (rules / "2.off").unlink()
    (rules / "3").write_text(text)
    assert of_oar(folder) == {"rule": "2 rules call metasched"}
    (rules / "3").unlink()
    (rules / "2").write_text(f"{text}# more\n")
    assert of_oar(folder) == {"rule": f"rule 2 is not that of {folder}/admission_rule.pl"}
    (rules / "2").unlink()
    assert of_oar(folder) == {"rule": "no admission rule calls metasched"}


def test_a_server_of_oar_that_does_not_answer_or_a_property_that_differs_is_found(rules: Path, folder: Path) -> None:
    assert of_oar(folder, "site") == {"property": f"{folder}/hooks.conf: property = cluster"}
    hooks(folder, "oar")
    assert of_oar(folder, "")["property"] == "no property tells partitions apart"
    command(folder, "oarnodes", "echo no database >&2; exit 1")
    assert "no database" in of_oar(folder)["server"]


def test_a_hook_that_lacks_files_or_does_not_reach_the_daemon_is_found(rules: Path, folder: Path) -> None:
    hooks(folder, "oar", property="cluster", socket=f"{folder}/other.sock", cluster="c", deadline="9")
    shutil.copy(rules / "2", folder / "admission_rule.pl")
    assert set(of_oar(folder)) == {"hooks.conf", "hook"}
    (folder / "metasched_advice.py").unlink()
    assert "metasched_advice.py" in of_oar(folder)["hook"]


def of_flux(folder: Path, plugins: str) -> dict[str, str]:
    command(folder, "flux", f"case $* in *plugins) echo '{plugins}';; *) echo '{{\"new\": {{}}}}';; esac")
    return wrong(check_flux("flux", "", f"{folder}/d.sock"))


def test_flux_must_call_the_plugin_first(folder: Path) -> None:
    hooks(folder, "flux")
    ours = f"{folder}/metasched_flux.py"
    assert of_flux(folder, json.dumps([ours, "defaults", "constraints"])) == {}
    behind = of_flux(folder, json.dumps(["defaults", ours]))
    assert behind == {"plugin": "metasched_flux.py comes behind defaults"}
    assert of_flux(folder, "[]") == {"plugin": "the frobnicator's plugins are not named"}
    hooks(folder, "flux", cluster="other")
    assert "cluster = other" in of_flux(folder, json.dumps([ours]))["hooks.conf"]
    command(folder, "flux", "echo no broker >&2; exit 1")
    assert "no broker" in wrong(check_flux("flux", "", None))["instance"]


HOOK = """Hook metasched
    type = site
    enabled = true
    event = queuejob,jobobit
    user = pbsadmin
    alarm = 5
    order = 1
"""


def of_pbs(folder: Path, listed: str = HOOK, **server: str) -> dict[str, str]:
    (folder / "hook.listed").write_text(listed)
    command(
        folder,
        "qmgr",
        'test -s "${0%/*}/hook.listed" || { echo hook not found >&2; exit 1; }\ncat "${0%/*}/hook.listed"',
    )
    command(folder, "qstat", f"echo '{json.dumps({'Server': {'pbs': {'server_state': 'Active'} | server}})}'")
    return wrong(check_pbs("pbs", "", f"{folder}/d.sock", folder))


def test_pbs_must_call_the_hook_for_both_events_and_remember_jobs(folder: Path) -> None:
    hooks(folder, "pbs", state=str(folder))
    keeps = {"job_history_enable": "True"}
    assert of_pbs(folder, **keeps) == {}
    assert set(of_pbs(folder)) == {"server"}
    assert of_pbs(folder, HOOK.replace("true", "false"), **keeps) == {"hook": "it is disabled"}
    assert of_pbs(folder, HOOK.replace(",jobobit", ""), **keeps) == {"hook": "it is not called for jobobit"}
    assert "alarm = 1" in of_pbs(folder, HOOK.replace("= 5", "= 1"), **keeps)["hook"]
    assert "hook not found" in of_pbs(folder, "", **keeps)["hook"]
    (folder / "metasched_pbs.py").unlink()
    assert "metasched_pbs.py" in of_pbs(folder, **keeps)["hook"]
    command(folder, "qstat", "echo cannot connect >&2; exit 1")
    assert "cannot connect" in wrong(check_pbs("pbs", "", None, folder))["server"]


CONFIGURED = {
    "STARTD_CRON_JOBLIST": "GPUS METASCHED", "JOB_TRANSFORM_NAMES": "Own, MetaschedRank, MetaschedPartition",
}  # fmt: skip


def of_htcondor(folder: Path, machines: str = "n1 0.9\nn2 0.5\n", **changed: str) -> dict[str, str]:
    settings = CONFIGURED | {"STARTD_CRON_METASCHED_EXECUTABLE": f"{folder}/metasched_loads.py"} | changed
    (folder / "machines").write_text(machines)
    cases = "".join(f"{key}) echo '{value}';; " for key, value in settings.items() if value)
    command(folder, "condor_config_val", f"case $1 in {cases} *) echo Not defined: $1 >&2; exit 1;; esac")
    command(folder, "condor_status", f"cat {folder}/machines")
    return wrong(check_htcondor("condor", ""))


def test_htcondor_must_know_our_settings_and_machines_publish_loads(folder: Path) -> None:
    hooks(folder, "htcondor")
    (folder / "metasched_loads.py").chmod(0o755)
    assert of_htcondor(folder) == {}
    assert of_htcondor(folder, JOB_TRANSFORM_NAMES="Own") == {
        "settings": "JOB_TRANSFORM_NAMES does not name MetaschedRank, MetaschedPartition"
    }
    assert of_htcondor(folder, STARTD_CRON_JOBLIST="") == {"settings": "STARTD_CRON_JOBLIST does not name METASCHED"}
    assert of_htcondor(folder, machines="n1 0.9\nn2 undefined\n") == {
        "loads": "1 of 2 machines publish no loads, n2 among them"
    }
    (folder / "metasched_loads.py").unlink()
    assert set(of_htcondor(folder)) == {"cron job"}
    command(folder, "condor_status", "echo no collector >&2; exit 1")
    assert "no collector" in wrong(check_htcondor("condor", ""))["collector"]


def test_every_fault_of_a_hook_comes_with_what_mends_it(rules: Path, folder: Path) -> None:
    def remedies(findings: Iterable[Finding]) -> list[tuple[str, str]]:
        found = list(findings)
        assert all(bool(each.remedy) == (each.state != "well") for each in found)
        return [(each.state, each.remedy) for each in found if each.state != "well"]

    def oar(attribute: str = "cluster") -> list[tuple[str, str]]:
        return remedies(check_oar("oar", attribute, f"{folder}/d.sock"))

    (rules / "2.off").touch()
    assert oar() == [("wrong", "oaradmissionrules -m 2 -Y")]
    (rules / "2.off").unlink()
    (rules / "3").write_text((rules / "2").read_text())
    assert oar() == [("wrong", "oaradmissionrules --delete all but one")]
    (rules / "3").unlink()
    (rules / "2").write_text((rules / "2").read_text() + "# more\n")
    assert oar() == [("watch", "metasched setup oar")]
    (rules / "2").unlink()
    assert oar() == [("wrong", "metasched setup oar")]
    where = "set property under [[oar]] and in hooks.conf: jobs are left alone"
    assert oar("site")[0] == ("wrong", where)
    assert oar("")[0] == ("watch", where)

    def flux(plugins: Iterable[str]) -> list[tuple[str, str]]:
        of_flux(folder, json.dumps([*plugins]))
        return remedies(check_flux("flux", "", f"{folder}/d.sock"))

    hooks(folder, "flux")
    ours = f"{folder}/metasched_flux.py"
    assert flux([]) == [("wrong", "metasched setup flux; flux config reload")]
    assert flux(["defaults", ours]) == [("wrong", "let ingest.frobnicator.plugins begin with it")]
    assert flux(["constraints", "defaults", ours]) == flux(["constraints", ours]) == flux(["defaults", ours])

    def pbs(listed: str, **server: str) -> list[tuple[str, str]]:
        of_pbs(folder, listed, **server)
        return remedies(check_pbs("pbs", "", f"{folder}/d.sock", folder))

    hooks(folder, "pbs", state=str(folder))
    keeps = {"job_history_enable": "True"}
    assert pbs(HOOK) == [("watch", 'qmgr -c "set server job_history_enable = true"')]
    assert pbs(HOOK.replace("true", "false"), **keeps) == [("wrong", 'qmgr -c "set hook metasched enabled = true"')]
    events = "qmgr -c \"set hook metasched event = 'queuejob,jobobit'\""
    assert pbs(HOOK.replace(",jobobit", ""), **keeps) == [("wrong", events)]
    assert pbs(HOOK.replace("= 5", "= 1"), **keeps) == [("wrong", 'qmgr -c "set hook metasched alarm = 5"')]
    assert pbs(HOOK.replace("= 5", "= 2"), **keeps) == []

    def htcondor(**changed: str) -> list[tuple[str, str]]:
        of_htcondor(folder, **changed)
        return remedies(check_htcondor("condor", ""))

    hooks(folder, "htcondor")
    (folder / "metasched_loads.py").chmod(0o755)
    assert htcondor(machines="n1 undefined\n") == [("watch", "metasched setup htcondor there, and see its agent")]
    assert htcondor(JOB_TRANSFORM_NAMES="Own") == [("wrong", "metasched setup htcondor; condor_reconfig")]
    (folder / "metasched_loads.py").unlink()
    assert htcondor() == [("wrong", "metasched setup htcondor")]
