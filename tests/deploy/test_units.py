"""What an administrator installs: systemd understands the units and finds them closed enough, settings are read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from metasched.schedulers.settings import SlurmCluster
from metasched.service.configuration import Configuration, read_configuration
from monitors.sources.settings import SourceTable

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted(DEPLOYED.glob("*.service"))
#: What a unit may be exposed to, of 10, by systemd's own reckoning; below 3 it calls a service well protected.
EXPOSED = 2.5
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")


def analyze(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, cwd=folder, timeout=60
    )


@pytest.fixture(params=UNITS, ids=lambda unit: unit.name)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit as it is deployed, but for the program, which is not installed here."""
    copy = tmp_path / request.param.name
    text, count = re.subn(r"^(ExecStart=)\S+", rf"\1{shutil.which('true')}", request.param.read_text(), flags=re.M)
    assert count == 1
    copy.write_text(text)
    return copy


@needs_systemd
def test_systemd_accepts_every_unit(unit: Path) -> None:
    found = analyze("verify", "--man=no", unit.name, folder=unit.parent)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_what_is_wrong(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHoume="))
    found = analyze("verify", "--man=no", unit.name, folder=unit.parent)
    assert "ProtectHoume" in found.stderr


@needs_systemd
def test_units_are_closed_to_what_they_do_not_need(unit: Path) -> None:
    found = analyze("security", "--offline=true", f"--threshold={10 * EXPOSED:.0f}", unit.name, folder=unit.parent)
    assert found.returncode == 0, found.stdout
    answer = analyze("security", "--offline=true", "--json=short", unit.name, folder=unit.parent)
    checks = {each["json_field"]: each["set"] for each in json.loads(answer.stdout)}
    for needed in ("NoNewPrivileges", "ProtectHome", "ProtectSystem", "UserOrDynamicUser", "PrivateTmp"):
        assert checks[needed], needed


def test_a_service_that_ends_by_itself_is_started_again() -> None:
    """A daemon that another has taken the lead from ends without a failure, to follow from then on."""
    assert [unit.name for unit in UNITS if "\nRestart=always\n" not in unit.read_text()] == []


def test_the_agents_unit_limits_no_processor_time_since_probes_would_take_its_own_limit_for_the_nodes_load() -> None:
    names = {line.partition("=")[0] for line in (DEPLOYED / "metasched-agent.service").read_text().splitlines()}
    assert "MemoryMax" in names
    assert not names & {"CPUQuota", "CPUWeight", "CPUAffinity", "AllowedCPUs", "CPUSchedulingPolicy", "Nice"}


def test_no_unit_shares_its_state_with_another() -> None:
    """A state folder of a unit with a user of its own and one of a unit with a dynamic user are moved to and fro."""
    folders = [line for unit in UNITS for line in unit.read_text().splitlines() if line.startswith("StateDirectory=")]
    assert len(set(folders)) == len(folders) == len(UNITS)


def test_the_journals_settings_are_known_to_the_journal() -> None:
    lines = (DEPLOYED / "journald-metasched.conf").read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    assert settings[0] == "[Journal]"
    shipped = Path("/etc/systemd/journald.conf")
    if not shipped.exists():
        pytest.skip("systemd's journal is not installed")
    known = set(re.findall(r"^#?(\w+)=", shipped.read_text(), flags=re.M))
    assert {line.partition("=")[0] for line in settings[1:]} <= known


def test_the_example_of_the_daemons_configuration_shows_the_defaults() -> None:
    shown = read_configuration(DEPLOYED / "metasched.toml")
    own = {"database": "/var/lib/metasched/metasched.db", "slurm": [SlurmCluster(name="cluster")]}
    socket = "/run/metasched/metasched.sock"
    assert shown.model_copy(update={"listen": shown.listen.model_copy(update={"socket": None})}) == (
        Configuration().model_copy(update=own)
    )
    assert shown.listen.socket == socket
    assert f"socket = {socket}" in (DEPLOYED / "slurm" / "hooks.conf").read_text()


def missing(model: type[BaseModel], shown: dict[str, Any], where: str = "") -> Iterator[str]:
    """The keys of a table, and of those in it, that an example does not show."""
    for name, field in model.model_fields.items():
        at = f"{where}{name}"
        if name not in shown:
            yield at
            continue
        of_field = {field.annotation, *get_args(field.annotation)}
        inner = next((each for each in of_field if isinstance(each, type) and issubclass(each, BaseModel)), None)
        tables = shown[name] if isinstance(shown[name], list) else [shown[name]]
        if inner is not None and tables:
            yield from missing(inner, dict(ChainMap(*tables)), f"{at}.")


def test_the_example_of_the_daemons_configuration_shows_every_key() -> None:
    text = (DEPLOYED / "metasched.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(re.sub(r"(?m)^#\s?(\[|\w+ = )", r"\1", text))
    # The hardware stands beside watts, of which a table has one.
    assert [*missing(Configuration, shown)] == ["slurm.hardware"]
    assert "or hardware = " in text


@pytest.mark.parametrize("shown", ["deploy/metasched.toml", "docs/sensors.md"])
def test_the_examples_of_sources_are_sound(shown: str) -> None:
    lines = (DEPLOYED.parent / shown).read_text().splitlines()
    if shown.endswith(".toml"):
        lines = [line.removeprefix("#").strip() for line in lines[lines.index("# [[source]]") :]]
        lines = [line for line in lines if re.match(r"\[\[|\w+ = ", line)]
    else:
        lines = lines[lines.index("[[source]]") : lines.index("```", lines.index("[[source]]"))]
    tables = [SourceTable.model_validate(table) for table in tomllib.loads("\n".join(lines))["source"]]
    assert tables[0].kind == "prometheus"
    assert tables[0].model_fields_set >= SourceTable.model_fields.keys() - {"configuration"}
    assert len({table.kind for table in tables}) == (3 if shown.endswith(".toml") else 1)
