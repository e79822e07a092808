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
        with pytest.raises(ValueError, match=f"{file}: ") as refusal:
            measure(words, program, [2], [8], 1, str(file))
        assert "MPI_ABORT" not in str(refusal.value)
    assert kept.read_text() == "results of years"
    found = measure(words, program, [2], [8], 1, str(tmp_path / "made"))
    assert {"read", "write"} <= {row.partition(",")[0] for row in found.splitlines()}
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sleep 60", "launcher took longer than 0.2 s"),
        ("echo no   nodes >&2; exit 3", "failed with status 3: no nodes"),
        ("exit 4", "failed with status 4"),
        ("echo barrier,1e-6,0,1,1,", "started 1 of 2 processes together, expected the launcher of the compiler's MPI"),
    ],
)
def test_a_launcher_that_hangs_or_fails_is_named(body: str, said: str, tmp_path: Path) -> None:
    words = launcher(tmp_path, b"")
    Path(words[0]).write_text(f"#!/bin/sh\n{body.replace('sleep', 'exec sleep')}\n")
    with pytest.raises(ValueError, match=f"{said}$"):
        measure(words, Path("program"), [2], [8], 1, timeout=0.2 if "sleep" in body else 60.0)
    with pytest.raises(ValueError, match=r"^none/launcher cannot be run: No such file or directory$"):
        measure(["none/launcher"], Path("program"), [2], [8], 1)


def test_each_point_is_the_median_of_its_repetitions_with_each_number_of_processes(tmp_path: Path) -> None:
    """A launcher that keeps its words, and prints what takes longer the more processes there are."""
    path = tmp_path / "launcher"
    path.write_text(
        f"""#!/bin/sh
echo $@ >>{tmp_path}/words
for value in 5.5 1.25 2; do echo "p2p,${{value}}e-0$3,8,$3,,"; done
echo "disk,1e-3,,,1,"
echo "compute,0e0,,,1,1000"
"""
    )
    path.chmod(0o755)
    found = measure([str(path), "--bind"], Path("program"), [2, 4], [8, 64], 3)
    assert found == f"{HEADER}\np2p,0.02,8,2,,\ndisk,0.001,,,1,\np2p,0.0002,8,4,,\n"
    measure([str(path), "--bind"], Path("program"), [2], [8], 7, "/disk/new")
    assert (tmp_path / "words").read_text().splitlines() == [
        "--bind -np 2 program 3 - 8 64", "--bind -np 4 program 3 - 8 64", "--bind -np 2 program 7 /disk/new 8",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("p2p,2e-6,8,1,1,", True), ("p2p,2.5e6,,,,", True), ("p2p,2.5e+06,8,1,1,1000", True),
        ("P2P,2e-6,8,1,1,", False), ("p2p,2,8,1,1,", False), ("p2p,-2e-6,8,1,1,", False),
        ("p2p,2e-6,8,1,1", False), ("p2p,2e-6,8,1,1,1,", False),
        (" p2p,2e-6,8,1,1,", False), ("p2p,2e-6,8.5,1,1,", False), ("p2p,1234e-6,8,1,1,", False),
    ],
)  # fmt: skip
def test_a_line_of_a_measurement_has_six_columns(line: str, read: bool, tmp_path: Path) -> None:
    words = launcher(tmp_path, f"{line}\nother,1e0,,,,\n".encode())
    assert len(measure(words, Path("program"), [2], [8], 1).splitlines()) == 2 + read


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (1, "4 processes ran on 1 host, expected one on each node: {} needs an option such as --map-by node"),
        (3, "4 processes ran on 3 hosts, expected one on each node: {} needs an option such as --map-by node"),
        (4, ""),
    ],
)
def test_a_warning_says_that_processes_share_a_host(hosts: int, said: str, tmp_path: Path) -> None:
    words, lines = launcher(tmp_path, f"hosts,{hosts}.0e+00,,4,,\np2p,2e-6,8,2,1,\n".encode()), list[str]()
    found = measure(words, Path("program"), [4], [8], 1, warn=lines.append)
    assert found == measure(words, Path("program"), [4], [8], 1) == f"{HEADER}\np2p,2e-06,8,2,1,\n"
    assert lines == [said.format(words[0])] * bool(said)


def test_of_what_a_failed_launcher_says_the_beginning_is_quoted(tmp_path: Path) -> None:
    words = launcher(tmp_path, b"")
    Path(words[0]).write_text("#!/bin/sh\nhead -c 600 /dev/zero | tr '\\0' x >&2; exit 1\n")
    with pytest.raises(ValueError, match=r"failed with status 1: x{500}$"):
        measure(words, Path("program"), [2], [8], 1)
