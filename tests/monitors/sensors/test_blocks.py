"""Runs of the micro-benchmark: what launchers print besides it counts for nothing, and no file of the user is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from monitors.sensors.blocks import HEADER, OPTIONS, SOURCE, measure


def launcher(folder: Path, output: bytes) -> list[str]:
    """A launcher that prints something and ignores its program."""
    (folder / "output").write_bytes(output)
    path = folder / "launcher"
    path.write_text(f"#!/bin/sh\ncat {folder / 'output'}\n")
    path.chmod(0o755)
    return [str(path)]


def test_lines_of_the_launcher_are_no_measurements(tmp_path: Path) -> None:
    said = b"node\xff1, up, ready, x, y, z\np2p,2e-6,8,1,1,\np2p,4e-6,8,1,1,\np2p,nan,8,1,1,\na,b,c,d,e,f\n"
    words = launcher(tmp_path, said)
    assert measure(words, Path("program"), [2], [8], 1).splitlines() == [HEADER, "p2p,3e-06,8,1,1,"]


def test_a_launcher_that_prints_no_measurement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        measure(launcher(tmp_path, b"ready\n"), Path("program"), [2], [8], 1)


@pytest.mark.skipif(not (shutil.which("mpicc") and shutil.which("mpirun")), reason="needs MPI")
def test_a_file_that_is_there_already_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from metasched.tracing.compiled import compiled

    if os.geteuid() == 0:
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    kept = tmp_path / "kept"
    kept.write_text("results of years")
    program = compiled(SOURCE, "mpicc", OPTIONS)
    words = ["mpirun", "--oversubscribe"]
    for file in (kept, tmp_path / "nowhere" / "file", tmp_path):
        with pytest.raises(ValueError, match=f"{file}: "):
            measure(words, program, [2], [8], 1, str(file))
    assert kept.read_text() == "results of years"
    found = measure(words, program, [2], [8], 1, str(tmp_path / "made"))
    assert {"read", "write"} <= {row.partition(",")[0] for row in found.splitlines()}
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sleep 60", "launcher took longer than 0.2 s"),
        ("echo no   nodes >&2; exit 3", "failed with status 3: no nodes"),
    ],
)
def test_a_launcher_that_hangs_or_fails_is_named(body: str, said: str, tmp_path: Path) -> None:
    words = launcher(tmp_path, b"")
    Path(words[0]).write_text(f"#!/bin/sh\n{body.replace('sleep', 'exec sleep')}\n")
    with pytest.raises(ValueError, match=f"{said}$"):
        measure(words, Path("program"), [2], [8], 1, timeout=0.2 if "sleep" in body else 60.0)
    with pytest.raises(ValueError, match=r"^none/launcher cannot be run: No such file or directory$"):
        measure(["none/launcher"], Path("program"), [2], [8], 1)
