"""Recipes of packages agree with the project: version, what is needed and in which bounds, and the files they name."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from metasched.service.configuration import Configuration, read_configuration

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "deploy" / "packages"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
AGENT: dict[str, Any] = tomllib.loads((PACKAGES / "agent" / "pyproject.toml").read_text())["project"]


def test_every_recipe_is_of_this_version() -> None:
    version = PROJECT["version"]
    assert AGENT["version"] == version
    spec = (PACKAGES / "rpm" / "metasched.spec").read_text()
    assert re.findall(r"(?m)^Version: +(\S+)", spec) == [version]
    assert f'version("{version}")' in (PACKAGES / "spack" / "py-metasched" / "package.py").read_text()
    (recipe,) = (PACKAGES / "easybuild").glob("*.eb")
    assert recipe.name.startswith(f"metasched-{version}-")
    assert f"version = '{version}'" in recipe.read_text()


def _imported(tree: ast.AST) -> set[str]:
    """Packages that are imported when a module is: not those of functions or for checks of types."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif not (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ):
            found |= _imported(node)
    return found


def test_all_that_is_imported_at_once_is_among_what_is_needed() -> None:
    own = {"candidate_functions", "metasched", "monitors"}
    modules = [path for room in own for path in (ROOT / room).rglob("*.py")]
    imported = set().union(*(_imported(ast.parse(path.read_text())) for path in modules))
    # FastAPI is a layer over Starlette, pydantic one over its core, and both bring these.
    needed = {"starlette", "pydantic-core", *(re.split(r"[<>=\[]", each)[0] for each in PROJECT["dependencies"])}
    distributions = metadata.packages_distributions()
    foreign = imported - own - set(sys.stdlib_module_names)
    assert {"pydantic", "numpy", "sqlalchemy"} <= foreign
    of_which = {
        name: {each.lower().replace("_", "-") for each in distributions.get(name, ())} for name in sorted(foreign)
    }
    assert {name: found for name, found in of_which.items() if not found & needed} == {}


def test_the_agent_needs_a_part_of_what_all_needs_and_nothing_that_computes() -> None:
    assert set(AGENT["dependencies"]) < set(PROJECT["dependencies"])
    assert not [
        each for each in AGENT["dependencies"] if re.match("numpy|scipy|scikit|matplotlib|fastapi|sqlalchemy", each)
    ]
    assert AGENT["requires-python"] == PROJECT["requires-python"]


def test_the_recipe_for_spack_names_what_is_needed_in_its_bounds() -> None:
    text = (PACKAGES / "spack" / "py-metasched" / "package.py").read_text()
    ast.parse(text)
    named = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):', text))
    wanted = dict(re.match(r"([\w-]+)>=([\d.]+)", each).groups() for each in PROJECT["dependencies"])  # type: ignore[union-attr,misc]
    assert {name: low for name, low in named.items() if name not in ("setuptools", "psycopg")} == wanted


def test_the_recipe_for_easybuild_is_python_with_what_easybuild_asks_for() -> None:
    (recipe,) = (PACKAGES / "easybuild").glob("*.eb")
    found: dict[str, Any] = {}
    exec(compile(recipe.read_text(), recipe.name, "exec"), found)  # as EasyBuild reads it
    asked = {
        "easyblock",
        "name",
        "version",
        "homepage",
        "description",
        "toolchain",
        "moduleclass",
        "sanity_check_paths",
    }
    assert asked <= found.keys()
    assert recipe.stem == f"metasched-{found['version']}-{found['toolchain']['name']}-{found['toolchain']['version']}"


def test_the_configuration_in_the_debian_package_is_sound_and_names_no_cluster() -> None:
    build = (PACKAGES / "debian" / "build").read_text()
    (words,) = re.findall(r"sed '(.*)' \"\$deploy/metasched.toml\"", build)
    shown = ROOT / "deploy" / "metasched.toml"
    made = subprocess.run(["sed", words, shown], capture_output=True, text=True, check=True).stdout
    assert Configuration.model_validate(tomllib.loads(made)) == read_configuration(shown).model_copy(
        update={"slurm": []}
    )
    assert "# [[slurm]]\n# name = " in made


CHANGES = {
    "installed": ("postinst", ["configure", ""], ["daemon-reload"]),
    "upgraded": ("postinst", ["configure", "0.0.9"], ["daemon-reload", "try-restart p.service"]),
    "removed": ("prerm", ["remove"], ["disable --now p.service"]),
    "about to be upgraded": ("prerm", ["upgrade", "0.3.0"], []),
    "gone": ("postrm", ["remove"], ["daemon-reload"]),
    "purged": ("postrm", ["purge"], []),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("systemd", "status"), [(True, 0), (True, 1), (False, 0)])
def test_a_debian_package_leaves_no_service_running_on_files_that_are_not_its_own(
    change: str, systemd: bool, status: int, tmp_path: Path
) -> None:
    script, words, asked = CHANGES[change]
    text = (PACKAGES / "debian" / script).read_text()
    for word, meant in {"NAME": "p", "USER": "", "SECRETS": "/etc/p/token"}.items():
        text = text.replace(word, meant)
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nexit {status}\n')
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "asked").touch()
    (tmp_path / "opt" / "p" / "lib" / "__pycache__").mkdir(parents=True)
    (tmp_path / "etc" / "p").mkdir(parents=True)
    for name in ("token", "settings"):  # of which dpkg itself removes the settings
        (tmp_path / "etc" / "p" / name).touch()
    if systemd:
        (tmp_path / "run" / "systemd" / "system").mkdir(parents=True)
    environment = {"DPKG_ROOT": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", text, script, *words], env=environment, check=True)
    assert (tmp_path / "asked").read_text().splitlines() == (asked if systemd else [])
    assert (tmp_path / "opt" / "p" / "lib" / "__pycache__").exists() == (script != "prerm")
    kept = {each.name for each in (tmp_path / "etc" / "p").iterdir()}
    assert kept == ({"settings"} if words == ["purge"] else {"settings", "token"})


@pytest.mark.skipif(not shutil.which("rpmspec"), reason="rpmspec is not installed (Debian: rpm)")
def test_the_spec_for_rpm_is_understood_by_its_own_tool() -> None:
    words = ["rpmspec", "-q", "--qf", "%{name} %{version} %{license}", str(PACKAGES / "rpm" / "metasched.spec")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"metasched {PROJECT['version']} Apache-2.0"


def test_the_container_is_made_of_files_that_exist_and_runs_as_nobody_else() -> None:
    text = (PACKAGES / "container" / "Containerfile").read_text()
    steps = re.findall(r"(?m)^([A-Z]+) (.*)$", text)
    assert [words for kind, words in steps if kind == "USER"] == ["metasched"]
    assert ("ENTRYPOINT", '["metasched"]') in steps
    assert "postgresql" in PROJECT["optional-dependencies"]
