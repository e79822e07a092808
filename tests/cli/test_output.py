"""Tables are printed whole, however narrow the terminal is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich import box
from rich.console import Console, Group
from rich.table import Table

from metasched.cli import app, output
from metasched.store.database.store import Store


def made(style: box.Box) -> Table:
    table = Table(box=style)
    table.add_column("application")
    table.add_column("where", overflow="fold")
    for heading in ("wait + run", "90% interval", "Mbit/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row("a long name", "cluster: " + "n" * 40, "0 + 14.65", "6.958-30.83", "900")
    return table


@pytest.mark.parametrize("width", [20, 50, 60, 70, 80, 200])
@pytest.mark.parametrize("style", [box.SIMPLE, box.HEAVY_HEAD], ids=["simple", "heavy"])
@pytest.mark.parametrize("group", [False, True])
def test_no_cell_and_no_heading_is_cut_off(
    width: int, style: box.Box, group: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "out", Console(width=width, highlight=False))
    output.show(Group(made(style)) if group else made(style))
    said = capsys.readouterr().out
    for text in ("application", "wait + run", "0 + 14.65", "90% interval", "6.958-30.83", "Mbit/s", "900"):
        assert text in said
    assert "…" not in said
    assert ("n" * 40 in said) == (width == 200)


@pytest.mark.parametrize("width", [40, 70, 80, 88, 200])
def test_columns_of_words_make_room_without_cutting_off_those_at_the_right(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = output.table(
        "method", "mean PPE", "deviation", "median", "under 30 %", "90% coverage", "width", left=("method",)
    )
    table.add_row("gaussian_process", "19.75 %", "16.90 %", "15.98 %", "100.0%", "90.0%", "1.234")
    monkeypatch.setattr(output, "out", Console(width=width, highlight=False))
    output.show(table)
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.endswith("┘")
    assert {len(line) for line in lines} == {len(last)}
    assert len(last) <= max(width, 77)
    assert any(line.endswith(" 1.234 │") for line in lines)


def test_a_table_that_fits_is_as_narrow_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "out", Console(width=80, highlight=False))
    output.show(made(box.SIMPLE))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("control", ["\u202e", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\r", "\x08"])
def test_names_from_files_and_networks_cannot_control_the_terminal(
    control: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table(title=f"title {control}x")
    table.add_column(f"head{control}x")
    table.add_row(f"cell{control}x")
    output.show(table)
    output.say(f"line{control}x")
    output.to_stderr(f"error{control}x")
    said = capsys.readouterr()
    assert control[0] not in said.out + said.err
    assert all(word in said.out + said.err for word in ("title", "head", "cell", "line", "error"))


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/red]", "[link=http://h]x", "queue[0]", ":skull:", "a\\[b"])
def test_names_with_brackets_and_colons_are_shown_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(title=f"title {name}")
    table.add_column(f"head{name}", min_width=40)
    table.add_row(f"cell{name}")
    output.show(table)
    output.say(f"line{name}")
    output.to_stderr(f"error{name}")
    said = capsys.readouterr()
    assert all(f"{word}{name}" in said.out + said.err for word in ("title ", "head", "cell", "line", "error"))


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(Table("job", "wait"), empty="no job is pending")
    output.show(Table("job", title="newest 0 of 0 runs"))
    assert capsys.readouterr().out == "no job is pending\nnewest 0 of 0 runs: nothing to show\n"


def run(*words: str, program: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """A verb in a process of its own, or a program with this command line's functions at hand."""
    command = ["-c", program] if program else ["-m", "metasched", *words]
    return subprocess.run([sys.executable, *command], stderr=subprocess.PIPE, text=True, check=False, **options)


VERBS = pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["hardware", "list"], ["hardware", "list", "--json"]]
)


@VERBS
def test_a_full_disk_is_told_in_a_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = run(*words, stdout=full)
    assert (done.returncode, done.stderr) == (1, "metasched: standard output: no space left on device\n")


@VERBS
def test_nothing_is_said_where_nobody_reads_on(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run(*words, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@VERBS
def test_closed_streams_are_no_failure(words: list[str]) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$0" -m metasched "$@" {closed}', sys.executable, *words], capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "\\u2013"), ("latin-1", "\\u2013"), ("utf-8", "\u2013")])
def test_no_character_is_too_much_for_a_locale(encoding: str, shown: str) -> None:
    program = "from metasched.cli import output; output.prepare(); output.say('a \\u2013 b'); print('\\udcff')"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = run(program=program, stdout=subprocess.PIPE, env=environment, encoding=encoding)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"a {shown} b\n\\udcff\n", "")


def test_python_s_own_warnings_are_shown_only_on_request() -> None:
    program = "import warnings; from metasched.cli import output; output.prepare(); warnings.warn('odd', UserWarning)"
    assert run(program=program).stderr == ""
    assert "UserWarning: odd" in run(program=program, env=os.environ | {"PYTHONWARNINGS": "always"}).stderr


def test_of_a_line_that_is_far_too_long_the_middle_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output.to_stderr(f"--policy is {'x' * 100_000}, expected min-time or min-energy")
    said = capsys.readouterr().err
    assert len(said) < 1100
    assert said.startswith("metasched: --policy is xxx")
    assert said.endswith("xxx, expected min-time or min-energy\n")


@pytest.mark.parametrize(
    ("error", "said"), [(OverflowError("Result too large"), "Result too large"), (MemoryError(), "MemoryError")]
)
def test_numbers_too_large_to_compute_with_are_refused(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_large(*_: object) -> None:
        raise error

    monkeypatch.setattr("metasched.cli.daemon.database.opened", too_large)
    with pytest.raises(SystemExit) as left:
        app.main(["db", "prune", "--loads", "9"])
    assert left.value.code == 2
    assert capsys.readouterr().err == f"metasched: the input is too large to compute with: {said}\n"


def test_days_beyond_all_calendars_are_refused(tmp_path: Path) -> None:
    done = run("db", "prune", "--loads", "9" * 23, "--database", str(tmp_path / "s.db"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr == f"metasched: --loads is '{'9' * 23}', expected less than or equal to 1000000\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("history evaluate log.csv --policy fifo", "--policy is 'fifo', expected one of 'easy', 'sjbf', 'order-only'"),
        ("hardware list --kind foo", "--kind is 'foo', expected one of 'cluster', 'cpu', 'gpu', 'link', 'bus', 'disk'"),
        ("hardware block galera barrier --nodes 2.5", "--nodes is '2.5', expected a valid integer"),
        ("hardware block galera p2p --data-size 1k", "--data-size is '1k', expected a valid number"),
        ("hardware measure -o m.csv --repetitions 0", "--repetitions is '0', expected greater than or equal to 1"),
    ],
)
def test_of_a_value_that_an_option_cannot_have_the_line_says_it_and_what_was_expected(words: str, said: str) -> None:
    done = run(*words.split())
    assert (done.returncode, done.stderr) == (2, f"metasched: {said}\n")


@pytest.mark.parametrize("words", [["runs", "--application"], ["token", "add", "--role", "reader"], ["wait"]])
def test_words_that_are_not_in_utf_8_are_refused(words: list[str], tmp_path: Path) -> None:
    environment = os.environ | {"METASCHED_CONFIG": str(tmp_path / "none.toml"), "METASCHED_DB": str(tmp_path / "s.db")}
    Path(tmp_path, "none.toml").write_text(f'database = "{tmp_path}/s.db"\n[listen]\nsocket = "{tmp_path}/s.sock"\n')
    with Store.open(tmp_path / "s.db"):
        pass
    done = run(*words, "a\udcff", env=environment)
    assert done.returncode == 2
    assert (done.stderr.count("\n"), "a\\udcff" in done.stderr, "UTF-8" in done.stderr) == (1, True, True)


def test_what_the_system_refuses_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fail(argv: list[str]) -> int:
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setattr(app, "_run", fail)
    with pytest.raises(SystemExit) as left:
        app.main([])
    assert (left.value.code, capsys.readouterr().err) == (2, "metasched: /some/file: permission denied\n")
