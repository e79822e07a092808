"""``metasched setup gridengine`` sets a cell by qconf, leaves what the site has, and undoes itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import status_of

from metasched.service.configuration import read_configuration

#: A cell in a folder: a file for its configuration, one for each queue, and one for the operators.
QCONF = """#!{python} -IS
import pathlib, sys
cell = pathlib.Path({cell!r})
what, *words = sys.argv[1:]
if what == "-sconf":
    sys.stdout.write((cell / "global").read_text())
elif what == "-Mconf":
    text = pathlib.Path(words[0]).read_text()
    assert pathlib.Path(words[0]).name == "global" and "#" not in text
    (cell / "global").write_text("#global:\\n" + text)
elif what == "-sql":
    print(*sorted(each.name for each in (cell / "queues").iterdir()), sep="\\n")
elif what == "-sq":
    sys.stdout.write((cell / "queues" / words[0]).read_text())
elif what == "-rattr":
    kind, key, value, name = words
    lines = (cell / "queues" / name).read_text().splitlines()
    assert kind == "queue" and any(line.split()[0] == key for line in lines)
    kept = [line if line.split()[0] != key else key + "   " + value for line in lines]
    (cell / "queues" / name).write_text("".join(line + "\\n" for line in kept))
elif what in ("-so", "-ao", "-do"):
    there = set((cell / "operators").read_text().split())
    if what == "-so":
        sys.exit("no operator list defined") if not there else print(*there, sep="\\n")
    else:
        there = there | set(words) if what == "-ao" else there - set(words)
        (cell / "operators").write_text("".join(each + "\\n" for each in sorted(there)))
else:
    sys.exit("unknown option " + what)
"""
GLOBAL = """\
#global:
execd_spool_dir   /x
epilog   none
jsv_url   none
jsv_allowed_mod   ac,h,i
params   a=1 \\
         b=2
"""


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cell"
    (folder / "queues").mkdir(parents=True)
    (folder / "global").write_text(GLOBAL)
    (folder / "operators").write_text("")
    for name in ("long", "short"):
        (folder / "queues" / name).write_text(f"qname   {name}\nepilog   NONE\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "qconf").write_text(QCONF.format(python=sys.executable, cell=str(folder)))
    (tmp_path / "bin" / "qconf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return folder


def setup(cell: Path, *more: str) -> int:
    site = cell.parent
    words = ["setup", "gridengine", "--folder", f"{site}/hooks", "--config", f"{site}/metasched.toml"]
    return status_of(*words, "--socket", f"{site}/m.sock", "--state", f"{site}/kept", *more)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def settings(cell: Path) -> dict[str, set[str]]:
    """What the cell says, whatever the blanks and the order: qconf prints its configuration anew."""
    unfolded = {name: text.replace("\\\n", " ") for name, text in files(cell).items()}
    return {name: {" ".join(line.split()) for line in text.splitlines()} for name, text in unfolded.items()}


def test_a_cell_is_set_up_once_and_undone(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, before = cell.parent, settings(cell)
    assert setup(cell, "--plan", "--everywhere") == 0
    assert settings(cell) == before
    assert "set epilog of queue long to root@" in capsys.readouterr().out
    assert setup(cell, "--yes", "--everywhere") == 0
    hooks = site / "hooks"
    after = settings(cell)
    assert after["global"] - before["global"] == {
        f"jsv_url script:{hooks}/metasched-jsv",
        "jsv_allowed_mod ac,h,i,l_hard",
    }
    assert after["queues/long"] == {"qname long", f"epilog root@{hooks}/metasched-epilog"}
    assert after["operators"] == {"metasched"}
    assert f"socket = {site}/m.sock\n" in (hooks / "hooks.conf").read_text()
    assert os.access(hooks / "metasched-jsv", os.X_OK)
    configured = read_configuration(site / "metasched.toml")
    assert [each.name for each in (*configured.grid_engine, *configured.slurm)] == ["cell"]
    capsys.readouterr()
    assert setup(cell, "--yes", "--everywhere") == 0
    assert capsys.readouterr().out == "there is nothing to do\n"
    assert setup(cell, "--undo", "--yes") == 0
    assert settings(cell) == before
    assert sorted(path.name for path in site.iterdir()) == ["bin", "cell"]


def test_epilogs_wait_until_every_host_has_them(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(cell, "--yes") == 0
    assert "epilog NONE" in settings(cell)["queues/long"]
    assert "copy" in (shown := capsys.readouterr().out)
    assert "--everywhere" in shown
    assert setup(cell, "--yes", "--everywhere", "--queue", "long") == 0
    assert ["epilog NONE" in settings(cell)[f"queues/{name}"] for name in ("long", "short")] == [False, True]


def test_what_the_site_has_runs_on(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cell / "global").write_text(GLOBAL.replace("jsv_url   none", "jsv_url   script:check@/site/jsv"))
    (cell / "queues" / "long").write_text("qname   long\nepilog   root@/site/epilog $host\n")
    (cell / "queues" / "short").write_text("qname   short\nepilog   /site/epilog\n")
    before = settings(cell)
    assert setup(cell, "--yes", "--everywhere") == 0
    after, shown = settings(cell), " ".join(capsys.readouterr().out.split())
    hooks = cell.parent / "hooks"
    assert after["queues/long"] == {"qname long", f"epilog root@{hooks}/metasched-epilog --beside /site/epilog $host"}
    assert after["queues/short"] == before["queues/short"]
    assert f"jsv_url script:check@{hooks}/metasched-jsv" in after["global"]
    assert (hooks / "site-verifier").read_text() == "/site/jsv\n"
    assert (
        f"queue short already has an epilog, /site/epilog: let it call, as root, {hooks}/metasched-epilog || true"
        in shown
    )
    # What somebody sets afterwards stays.
    (cell / "queues" / "long").write_text("qname long\nepilog root@/other\n")
    assert setup(cell, "--undo", "--yes") == 0
    assert settings(cell) == before | {"queues/long": {"qname long", "epilog root@/other"}}
    assert not hooks.exists()


def test_a_verifier_that_the_site_sets_later_comes_behind_ours_too(
    cell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = cell.parent / "hooks" / "site-verifier"

    def site_sets(verifier: str) -> None:
        text = (cell / "global").read_text()
        lines = [line if "jsv_url" not in line else f"jsv_url   {verifier}" for line in text.splitlines()]
        (cell / "global").write_text("\n".join(lines) + "\n")

    assert setup(cell, "--yes") == 0
    assert not named.exists()
    for verifier in ("/site/first", "/site/second"):
        site_sets(f"script:{verifier}")
        assert setup(cell, "--yes") == 0
        assert named.read_text() == f"{verifier}\n"
        assert f"jsv_url script:{cell.parent}/hooks/metasched-jsv" in settings(cell)["global"]
    named.write_text("/by/hand\n")
    site_sets("script:/site/third")
    capsys.readouterr()
    assert setup(cell, "--yes") == 0
    assert "the cell's verifier, script:/site/third, is not called from it" in " ".join(capsys.readouterr().out.split())
    assert "jsv_url script:/site/third" in settings(cell)["global"]


@pytest.mark.parametrize("url", ["ldap:/site/jsv", "script:/site/jsv with words", "script:site/jsv"])
def test_a_verifier_that_cannot_be_called_by_ours_stays(
    url: str, cell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cell / "global").write_text(GLOBAL.replace("jsv_url   none", f"jsv_url   {url}"))
    assert setup(cell, "--yes") == 0
    assert f"jsv_url {url}" in settings(cell)["global"]
    assert f"the cell already has a verifier, {url}" in " ".join(capsys.readouterr().out.split())


def test_nothing_is_half_removed_where_the_cell_does_not_answer(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cell.parent / "bin" / "qconf").rename(cell.parent / "bin" / "away")
    (cell.parent / "bin" / "qconf").write_text("#!/bin/sh\necho no qmaster >&2\nexit 1\n")
    (cell.parent / "bin" / "qconf").chmod(0o755)
    assert setup(cell, "--yes") == 2
    assert "no qmaster" in capsys.readouterr().err
    assert not (cell.parent / "hooks").exists()
    (cell.parent / "bin" / "away").rename(cell.parent / "bin" / "qconf")
    assert setup(cell, "--yes", "--everywhere") == 0
    installed = settings(cell)
    shutil.move(cell / "queues" / "short", cell / "short")
    assert setup(cell, "--undo", "--yes") == 1
    assert (cell.parent / "hooks" / "metasched-epilog").exists()
    shutil.move(cell / "short", cell / "queues" / "short")
    assert setup(cell, "--undo", "--yes") == 0
    assert settings(cell) != installed
    assert not (cell.parent / "hooks").exists()


@pytest.mark.parametrize("status", [0, 3])
def test_the_epilog_of_the_site_runs_after_ours_with_its_own_words_and_status(status: int, tmp_path: Path) -> None:
    deployed = Path(__file__).resolve().parents[2] / "deploy" / "gridengine"
    shutil.copy(deployed / "metasched-epilog", tmp_path)
    (tmp_path / "metasched_epilog.py").write_text("import sys; print('ours', sys.argv[1:]); sys.exit(9)")
    words = ["--beside", "sh", "-c", f'echo "$@"; exit {status}', "site", "a b", "$(c)"]
    done = subprocess.run(
        [str(tmp_path / "metasched-epilog"), *words], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout, done.returncode) == ("ours []\na b $(c)\n", status)


def test_names_that_cannot_stand_in_files_are_refused(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(cell, "--name", 'a"b', "--yes") == 2
    assert "expected letters, digits" in capsys.readouterr().err
    assert json.loads(json.dumps(files(cell)))["operators"] == ""


def test_a_verifier_that_is_named_but_not_set_is_pointed_out(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(cell, "--plan", "--everywhere") == 0
    assert "names a verifier" not in " ".join(capsys.readouterr().out.split())
    hooks = cell.parent / "hooks"
    hooks.mkdir()
    (hooks / "site-verifier").write_text("/site/jsv\n")
    assert setup(cell, "--plan", "--everywhere") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "site-verifier names a verifier, but the cell has none: remove the file if it is not to be called" in said
