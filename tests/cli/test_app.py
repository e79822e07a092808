"""The list of verbs: each has its line from its own help, and showing them loads none of the heavy libraries."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from rich.text import Text

from metasched.cli.app import VERBS, load, summary

CLI = Path(__file__).parents[2] / "metasched" / "cli"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads_and_its_line_is_the_first_of_its_own_help(verb: str) -> None:
    command = load(verb)
    assert (command.name, " ".join((command.help or "").split("\n\n")[0].split())) == (verb, summary(verb))


def test_every_command_of_the_package_is_a_verb() -> None:
    groups = {f"{'.'.join(path.relative_to(CLI).with_suffix('').parts)}.{name}" for path in CLI.rglob("*.py")
              for name in re.findall(r"^(\w+) = typer\.Typer\(", path.read_text(), re.MULTILINE)}  # fmt: skip
    assert groups == {
        "daemon.database.db",
        "hardware.hardware",
        "history.history.history",
        "models.plot.plot",
        "runs.runs",
        "daemon.serve.token",
        "daemon.setup.setup",
        "signatures.signature.signature",
        "placements.sites.sites",
    }
    assert groups < set(VERBS.values())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_list_of_verbs_loads_no_heavy_library(arguments: list[str]) -> None:
    program = f"""
import sys
from metasched.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
heavy = set("numpy scipy sklearn pandas matplotlib sqlalchemy pydantic fastapi httpx networkx".split())
print(sorted(heavy & sys.modules.keys()), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (bool(done.stdout), done.stderr.splitlines()[-1]) == (True, "[]")


def test_help_shows_every_verb_with_what_it_does() -> None:
    command, wide = [sys.executable, "-m", "metasched", "--help"], os.environ | {"COLUMNS": "200"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=wide).stdout
    missing = [verb for verb in VERBS if summary(verb) not in shown]
    assert not missing


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and those in its group, with the words that call them."""
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


EVERY = dict(found for verb in VERBS for found in commands(load(verb), (verb,)))


def test_no_bracket_of_a_help_text_is_lost_as_markup() -> None:
    texts = {
        (*words, parameter.name): text
        for words, command in EVERY.items()
        for parameter in command.params
        if "[" in (text := getattr(parameter, "help", None) or "")
    }
    assert "[[source]]" in Text.from_markup(texts["rank", "source"]).plain
    shown = {name: Text.from_markup(text).plain for name, text in texts.items()}
    assert shown == {name: text.replace("\\[", "[") for name, text in texts.items()}


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_shows_its_help(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = call(capsys, *words, "--help")
    assert (status, err) == (0, "")
    assert f" {' '.join(words)} " in " ".join(out.split())
    assert not re.findall(r"list\[|<(?:str|int|float|bool|path|file|directory)\b", out)
    shown = [each for each in EVERY[words].params if not getattr(each, "hidden", False)]
    names = [name for parameter in shown for name in parameter.opts if name.startswith("--")]
    assert [name for name in (*names, "…") if (name in out) == (name == "…")] == []


def test_every_command_with_a_database_takes_both_spellings_of_the_option() -> None:
    spelled = {
        words: parameter.opts
        for words, command in EVERY.items()
        for parameter in command.params
        if parameter.name == "database"
    }
    assert len(spelled) > 15
    assert not [words for words, names in spelled.items() if names != ["--database", "--db"]]


@pytest.mark.parametrize("group", ["sites", "signature", "hardware", "history", "plot", "setup", "token", "db"])
def test_a_group_without_a_command_shows_its_help_and_nothing_else(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = call(capsys, group)
    assert (status, err) == (2, "")
    assert "Commands" in out


def test_an_interrupt_while_the_program_is_loaded_ends_it_without_a_traceback() -> None:
    program = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from metasched.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_an_interrupt_of_a_verb_leaves_with_130_and_no_traceback() -> None:
    program = """
import os, signal
from metasched.cli import app, main
app.load = lambda verb: os.kill(os.getpid(), signal.SIGINT)
main()
"""
    done = subprocess.run([sys.executable, "-c", program, "runs"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_verb_that_is_asked_to_end_tidies_up_and_ends_by_the_signal(number: int, tmp_path: Path) -> None:
    # Whoever runs the tests may ignore the signal, as nohup does.
    program = """
import os, signal, sys, tempfile
from metasched.cli import app, main
folder, number = sys.argv.pop(), int(sys.argv.pop())
signal.signal(number, signal.SIG_DFL)
def load(verb):
    with tempfile.TemporaryDirectory(dir=folder):
        os.kill(os.getpid(), number)
app.load = load
main()
"""
    command = [sys.executable, "-c", program, "runs", f"{number:d}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr, [*tmp_path.iterdir()]) == (-number, "", "", [])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_signal_in_a_callback_that_passes_no_exception_on_ends_the_verb(number: int, status: int) -> None:
    program = """
import os, sys, time
from metasched.cli import app, main
number = int(sys.argv.pop())
class Callback:
    def __del__(self):
        os.kill(os.getpid(), number)
def load(verb):
    Callback()
    time.sleep(60)
    print("went on")
app.load = load
main()
"""
    command = [sys.executable, "-c", program, "runs", f"{number:d}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_that_is_ignored_stays_ignored(number: int) -> None:
    program = """
import os, signal, sys
from metasched.cli import app, main
number = int(sys.argv.pop())
signal.signal(number, signal.SIG_IGN)
app.load = lambda verb: os.kill(os.getpid(), number) or sys.exit("went on")
main()
"""
    command = [sys.executable, "-c", program, "runs", f"{number:d}"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == "went on\n"


def test_where_interrupts_are_ignored_they_stay_ignored() -> None:
    program = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from metasched.cli import main
try:
    main()
finally:
    print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True, check=True)
    assert done.stderr == "True\n"
