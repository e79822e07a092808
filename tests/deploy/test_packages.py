"""Recipes of packages agree with the project: version, what is needed and in which bounds, and the files they name."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

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
