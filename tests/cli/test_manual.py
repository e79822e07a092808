"""Man pages show every verb and every option, in words that the formatter accepts without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metasched.cli.app import VERBS, load
from metasched.cli.manual import pages, write


def test_every_verb_has_a_page_with_every_option_of_it() -> None:
    found = dict(pages())
    assert set(found) == {"metasched.1", *(f"metasched-{verb}.1" for verb in VERBS)}
    text = found["metasched-rank.1"]
    options = [name for each in load("rank").params for name in each.opts if name.startswith("--")]
    assert len(options) > 20
    assert not [name for name in options if name.replace("-", "\\-") not in text]
    assert "token add" in found["metasched-token.1"]
    shown = {verb: verb.replace("-", "\\-") for verb in VERBS}
    assert not [verb for verb, name in shown.items() if f"metasched\\-{name}" not in found["metasched.1"]]


def test_a_page_says_what_an_option_and_an_argument_take() -> None:
    found = {name: text.replace("\\-", "-") for name, text in pages()}
    evaluate = found["metasched-evaluate.1"]
    assert ".B --loads <observed|forecast>\nLoads to predict with. [default: observed]\n" in evaluate
    assert ".SH ARGUMENTS\n.TP\n.B campaign PATH\nFolder with runs.csv" in evaluate
    assert ".SS ARGUMENTS\n.TP\n.B entry TEXT\n" in found["metasched-hardware.1"]
    assert "whose [[source]] tables name the sources" in found["metasched-rank.1"]
    assert ".B --learning / --no-learning\n" in evaluate


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff to format them")
def test_the_formatter_takes_them_without_a_warning(tmp_path: Path) -> None:
    assert write(tmp_path) == len(VERBS) + 1
    words = ["groff", "-man", "-ww", "-Tutf8", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", "LANG": "C"})
    assert done.stderr == ""
    assert "metasched-walltime - Suggest time limits" in " ".join(done.stdout.split())


def completed(*words: str) -> list[str]:
    program = "import sys; sys.argv = ['metasched']; from metasched.cli import main; main()"
    fields = {"_METASCHED_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("metasched", *words)), "COMP_CWORD": "0"}
    fields["COMP_CWORD"] = str(len(words))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=fields, check=True)
    return done.stdout.split()


def test_the_shell_completes_verbs_and_their_options() -> None:
    assert completed("wal") == ["walltime"]
    assert completed("walltime", "--pl") == ["--placement"]
