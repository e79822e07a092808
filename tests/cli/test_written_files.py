"""No verb writes over a file that the same call reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from command_line import call

from metasched.cli.app import VERBS, load
from metasched.cli.written_files import WRITTEN

RUNS = """cluster,application,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time
c,a,100,1,1,90,1
c,a,200,1,1,90,4
c,a,200,2,1,90,2.2
"""


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "given", "-o", "given"),
        ("fit", "given", "-o", "other/../given"),
        ("fit", "link", "-o", "given"),
        ("port", "m.json", "--reference", "runs.csv", "--target", "given", "-o", "given"),
        ("plot", "error", "given", "-o", "given"),
        ("scale", "p.json", "--hardware", "given", "--processes", "8", "-o", "given"),
        ("simulate", "system.toml", "given", "--size", "n", "--model", "given"),
        ("signature", "extract", "given", "-o", "given"),
        ("signature", "fit", "a.json", "given", "-o", "given"),
        ("signature", "expand", "given", "--processes", "64", "-o", "given"),
        ("hardware", "calibrate", "given", "-o", "given"),
        ("history", "report", "given", "--html", "given"),
    ],
    ids=" ".join,
)
def test_an_input_is_not_written_over(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "given").write_text(RUNS)
    os.link("given", "link")
    status, _, said = call(capsys, *words)
    assert (status, (tmp_path / "given").read_text()) == (2, RUNS)
    assert said.endswith(f" is {words[-1]}, which is an input too, expected another file\n")


def test_what_is_no_input_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs.csv").write_text(RUNS)
    for _ in range(2):
        assert call(capsys, "fit", tmp_path / "runs.csv", "-o", tmp_path / "model.json")[0] == 0


def leaves(command: Any) -> Iterator[Any]:
    inner = getattr(command, "commands", {})
    yield from (leaf for each in inner.values() for leaf in leaves(each)) if inner else [command]


def test_every_output_is_known_as_a_file_that_is_written() -> None:
    marked = 0
    for command in (leaf for verb in VERBS for leaf in leaves(load(verb))):
        types = get_type_hints(command.callback, include_extras=True)
        for each in command.params:
            if "-o" in each.opts or each.name in ("html", "picture", "simgrid"):
                assert WRITTEN in getattr(types[each.name], "__metadata__", ()), (command.name, each.name)
                marked += 1
    assert marked > 18
