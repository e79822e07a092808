"""Parameters are found again in measurements that were made with them; what cannot be fitted is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal

from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.calibration.robust import _terms
from metasched.blocks.entry import Block
from metasched.blocks.formulas import answer, as_printed
from metasched.store.files.hardware import read_entry

TRUTH = dataclasses.replace(read_entry("galera-plus"), log_base=2.0)
THREADS = [*range(1, 27), 30, 36, 42, 48]


def made(path: Path, blocks: list[str], repetitions: int, noise: float) -> Path:
    """Measurements of Table 1's formulas with Table 3's parameters, and noise."""
    rng, lines = np.random.default_rng(5), ["block,value,data_size,nodes,threads,instructions"]
    for block in blocks:
        for size in [0.0] if block in ("compute", "power", "barrier") else 2.0 ** np.arange(0, 23):
            for nodes in (1, 2, 4, 8, 16, 32) if block in ("bcast", "barrier", "alltoall") else (1,):
                for threads in THREADS if block in ("compute", "power") else (1,):
                    asked = {"data_size": size, "nodes": nodes, "threads": threads, "instructions": 1e6}
                    value = as_printed(TRUTH, Block(block), **asked)
                    for factor in 1 + noise * rng.standard_normal(repetitions):
                        lines.append(f"{block},{value * factor:.12g},{size:g},{nodes},{threads},1000000")
    path.write_text("\n".join(lines) + "\n")
    return path


def calibrated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    status, out, err = call(capsys, "hardware", "calibrate", *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_published_forms_are_found_again_with_their_breakpoints(capsys, tmp_path: Path) -> None:
    file = made(tmp_path / "m.csv", ["compute", "p2p", "bcast", "barrier", "read"], 8, 0.02)
    answer = calibrated(capsys, str(file), "--method", "published", "-o", str(tmp_path / "own.toml"))
    found = answer["parameters"]
    # T_hi is a tenth of what is measured beyond P_hi: its own uncertainty says how little is known of it.
    wrong = {name for name, each in found.items() if abs(each["value"] / (TRUTH[name] or 1) - 1) > 0.05}
    assert wrong <= {"T_hi"}
    assert abs(found["T_hi"]["value"] - TRUTH["T_hi"]) < 4 * found["T_hi"]["uncertainty"]
    assert (found["D_tu"]["value"], found["P_low"]["value"], found["P_hi"]["value"]) == (2048, 12, 24)
    assert {each["form"] for each in answer["blocks"].values()} == {"published"}
    assert min(each["r_squared"] for each in answer["blocks"].values()) > 0.99
    assert max(each["mean_percentage_error"] for each in answer["blocks"].values()) < 2.5
    assert read_entry(str(tmp_path / "own.toml"))["K_p2p"] == pytest.approx(TRUTH["K_p2p"], rel=0.05)


def test_robust_forms_bend_where_a_protocol_switches(capsys, tmp_path: Path) -> None:
    lines, rng = ["block,value,data_size"], np.random.default_rng(2)
    for size in 2.0 ** np.arange(0, 23):
        time = 2e-6 + 1e-9 * size if size <= 8192 else 30e-6 + 0.4e-9 * size
        lines += [f"p2p,{time * factor:.9g},{size:g}" for factor in 1 + 0.01 * rng.standard_normal(3)]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    answer = calibrated(capsys, str(tmp_path / "m.csv"), "-o", str(tmp_path / "own.toml"))["blocks"]["p2p"]
    assert answer["form"] == "terms"
    assert answer["mean_percentage_error"] < 4
    assert answer["r_squared"] > 0.99


@pytest.mark.parametrize("method", ["published", "robust"])
def test_computation_measured_with_one_number_of_threads_has_the_time_of_an_instruction(
    capsys, tmp_path: Path, method: str
) -> None:
    lines = [f"compute,{count * 4e-10:g},1,{count}" for count in (262144, 524288, 1048576)]
    (tmp_path / "m.csv").write_text("\n".join(["block,value,threads,instructions", *lines]))
    calibrated(capsys, str(tmp_path / "m.csv"), "--method", method, "-o", str(tmp_path / "own.toml"))
    entry = read_entry(str(tmp_path / "own.toml"))
    assert answer(entry, Block.compute, instructions=1e9).value == pytest.approx(0.4)


@pytest.mark.parametrize("method", ["published", "robust"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("block,value\n", "has no rows"),
        ("block,seconds\np2p,1\n", "column value missing"),
        ("block,value,data_size\nsend,1,1\n", "row 2: block is 'send', expected one of compute"),
        ("block,value,data_size\np2p,0,1\n", "row 2: value is 0, expected a number above 1e-18"),
        ("block,value,data_size\np2p,1e-320,1\n", "expected a number above 1e-18"),
        ("block,value,data_size\np2p,1,1e300\n", "row 2: data_size is 1e+300, expected a number from 0 to 1e+18"),
        ("block,value,data_size\np2p,1,-1\n", "row 2: data_size is -1"),
        ("block,value,data_size\np2p,1,1e-9\n", "data_size is 1e-09, expected 0 or a number from 1 to 1e+18"),
        ("block,value,nodes\nbarrier,1,2.5\n", "row 2: nodes is 2.5, expected a whole number"),
        ("block,value,threads\npower,1,2.5\n", "row 2: threads is 2.5, expected a whole number"),
        ("block,value\np2p,1\n", "row 2: data_size is missing, which p2p needs"),
        ("block,value,data_size\np2p,1,8\np2p,1,8\n", "determine"),
    ],
)
def test_unfit_measurements_end_in_one_line_and_nothing_is_written(
    capsys, tmp_path: Path, text: str, expected: str, method: str
) -> None:
    (tmp_path / "m.csv").write_text(text)
    arguments = [str(tmp_path / "m.csv"), "--method", method, "-o", str(tmp_path / "own.toml")]
    assert expected in refusal(call(capsys, "hardware", "calibrate", *arguments))
    assert not (tmp_path / "own.toml").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--compiler", "no-such-compiler", "--launcher", "true"], "no-such-compiler is not installed"),
        (["--processes", "2,x"], "--processes is 2,x, expected whole numbers from 1 to"),
        (["--sizes", "0"], "--sizes is 0, expected"),
        (["--launcher", "'open"], "expected a command with its options"),
        (["--launcher", ""], "--launcher is ''"),
        (["--compiler", "true", "--launcher", "true"], "true made no program of blocks.c"),
        (["--launcher", "no-mpirun -np"], "no-mpirun is not installed, expected the command that starts MPI programs"),
    ],
)
def test_what_cannot_be_measured_ends_in_one_line(capsys, tmp_path: Path, options: list[str], expected: str) -> None:
    status, _, err = call(capsys, "hardware", "measure", "-o", str(tmp_path / "m.csv"), *options)
    assert (status, err.count("\n"), (tmp_path / "m.csv").exists()) == (2, 1, False)
    assert expected in err


def test_an_output_that_cannot_be_written_is_refused_before_measuring(capsys, tmp_path: Path) -> None:
    output = str(tmp_path / "nowhere" / "m.csv")
    assert f"{output}: cannot be written: no such file or directory" in refusal(
        call(capsys, "hardware", "measure", "-o", output, "--launcher", "no-such-launcher")
    )


def test_the_uncertainty_of_a_robust_term_is_that_of_weighted_least_squares() -> None:
    """Of v = a + b x, weighted by 1/v: the roots of the diagonal of s^2 (X'WX)^-1, with s^2 of n - 2 degrees."""
    rng = np.random.default_rng(3)
    nodes, size = np.repeat([2.0, 4.0, 8.0, 16.0], 6), np.zeros(24)
    value = (1e-3 + 2e-3 * (nodes - 1)) * (1 + 0.05 * rng.standard_normal(24))
    terms = _terms(Block.gather, Measurements(value, size, nodes, np.ones(24)), (("1", "P-1"), ()))
    used = {term.growth: term for term in terms}
    design = np.column_stack([np.ones(24), nodes - 1]) / value[:, None]
    found, (residual,), *_ = np.linalg.lstsq(design, np.ones(24), rcond=None)
    expected = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual / 22)
    assert [used[growth].coefficient for growth in ("1", "P-1")] == pytest.approx(found.tolist())
    assert [used[growth].uncertainty for growth in ("1", "P-1")] == pytest.approx(expected.tolist())


def test_what_fits_exactly_keeps_its_form_whatever_the_last_digits_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, forms = np.random.default_rng(3), set()
    for number in range(12):
        path = tmp_path / f"{number}.csv"
        lines = [
            f"p2p,{(1e-5 + 1e-9 * size) * (1.0 + 1e-15 * rng.standard_normal())!r},{size},,,"
            for size in (0, 10, 1000, 10_000, 100_000, 1_000_000)
        ]
        path.write_text("\n".join(["block,value,data_size,nodes,threads,instructions", *lines, ""]))
        forms.add(calibrated(capsys, str(path), "-o", str(tmp_path / f"{number}.toml"))["blocks"]["p2p"]["form"])
    assert forms == {"published"}
