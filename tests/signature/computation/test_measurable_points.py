"""An application that leaves its cache: small workloads on few processes tell how long its instructions take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import status_of

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.records import InputError
from metasched.signature.computation.measurable_points import Pace, paces, point
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import lines
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.trace import Trace, trace_of
from metasched.store.files.ti_traces import write_ti_trace

VALUES = {"latency": (1e-5, "s"), "bandwidth": (1e9, "B/s"), "speed": (1e9, "flop/s")}
ENTRY = Entry("made", Kind.cluster, "", {name: Quantity(*value, "made") for name, value in VALUES.items()})
HERE = Hardware(ENTRY, ENTRY)
WORK, STEPS = 6.4e9, 10


def pace(instructions: float) -> float:
    """Nanoseconds of an instruction: twice as long beyond the cache, which holds what 5e7 instructions work on."""
    return 0.5 + 0.5 / (1.0 + (5e7 / instructions) ** 2)


def run_of(n: int, share: float = 1.0, timed: bool = False) -> Trace:
    """Work in two phases, the second of which has a tenth of the instructions; counted, or in nanoseconds."""
    each = [share * WORK / n, 0.1 * share * WORK / n]
    one, other = (float(f"{many * (pace(many) if timed else 1.0):.6g}") for many in each)
    step = [("compute", (one,)), ("barrier", ())]
    whole = [("init", ()), *(STEPS * step), ("bcast", (8, 0, 0)), *(STEPS * [("compute", (other,)), ("barrier", ())])]
    return trace_of({rank: [*whole, ("finalize", ())] for rank in range(n)})


def rules_of(*points: tuple[int, float]) -> Application:
    found = fit([run_of(n) for n in (16, 32, 64)]).application
    measured = [point(run_of(n, share), run_of(n, share, timed=True)) for n, share in points]
    return replace(found, paces=paces(measured)) if points else found


def seconds_of(n: int) -> float:
    return STEPS * 1e-9 * sum(many * pace(many) for many in (WORK / n, 0.1 * WORK / n))


POINTS = [(4, 4 / 64), (4, 4 / 128), (4, 4 / 256), (4, 4 / 512)]


@pytest.mark.parametrize("n", [128, 192, 384])
def test_points_tell_the_time_where_the_cache_holds_the_data(n: int) -> None:
    (told,) = predictions(by_blocks(rules_of(*POINTS), HERE), "blocks", [n], {}, False)
    assert sum(each.weight * each.computation for each in told.phases) == pytest.approx(seconds_of(n), rel=0.05)
    (without,) = predictions(by_blocks(rules_of(), HERE), "blocks", [n], {}, False)
    assert without.execution_time > 1.2 * seconds_of(n)


def test_it_is_said_where_points_do_not_reach() -> None:
    (told,) = predictions(by_blocks(rules_of(*POINTS[:2]), HERE), "blocks", [1024], {}, False)
    assert any("a run of 1024 has 6.25e+06 instructions in phase" in line for line in told.warnings)
    (told,) = predictions(by_blocks(rules_of(*POINTS), HERE), "blocks", [128], {}, False)
    assert not any("points" in line for line in told.warnings)


def test_points_come_back_from_their_document() -> None:
    rules = rules_of(*POINTS)
    assert Application.of(json.loads(json.dumps(rules.as_dict()))).paces == rules.paces


@pytest.mark.parametrize(
    "document",
    [None, {}, {"instructions": [], "seconds": []}, {"instructions": [2, 1], "seconds": [1, 1]},
     {"instructions": [1], "seconds": [-1]}, {"instructions": [1], "seconds": ["x"]}],
)  # fmt: skip
def test_paces_of_another_form_are_refused(document: object) -> None:
    with pytest.raises(InputError, match="pace"):
        Pace.of(document)


def test_a_pace_is_that_of_the_points_and_stays_outside_them() -> None:
    found = Pace((1e6, 1e7), (1e-9, 2e-9))
    assert found(np.array([1e5, 1e6, 1e7, 1e8])) == pytest.approx([1e-9, 1e-9, 2e-9, 2e-9])


def test_traces_of_other_runs_are_no_point() -> None:
    with pytest.raises(InputError, match="two of the same run"):
        point(run_of(4), run_of(8))


def _written(trace: Trace, to: Path) -> str:
    write_ti_trace(to, lines(trace))
    return str(to)


def test_points_are_extracted_and_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, small = [], []
    for place, (n, share) in enumerate([(4, 1.0), (8, 1.0), (16, 1.0), (4, 4 / 64)]):
        counted = _written(run_of(n, share), tmp_path / f"{place}.ti")
        timed = _written(run_of(n, share, timed=True), tmp_path / f"{place}t.ti")
        to = str(tmp_path / f"{place}.json")
        (small if share < 1.0 else runs).append(to)
        assert status_of("signature", "extract", counted, "--timed", timed, "-o", to) == 0
    application = str(tmp_path / "app.json")
    assert status_of("signature", "fit", *runs, "--points", *small, "-o", application) == 0
    capsys.readouterr()
    asked = ["--processes", "64", "--hardware", _entry(tmp_path), "--json"]
    assert status_of("signature", "predict", application, *asked) == 0
    (told,) = json.loads(capsys.readouterr().out)["predictions"]
    assert told["execution_time"] == pytest.approx(seconds_of(64), rel=0.05)


def test_points_without_times_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for n in (4, 8, 16):
        runs.append(str(tmp_path / f"{n}.json"))
        assert status_of("signature", "extract", _written(run_of(n), tmp_path / f"{n}.ti"), "-o", runs[-1]) == 0
    assert status_of("signature", "fit", *runs, "--points", runs[0], "-o", str(tmp_path / "app.json")) == 2
    assert "--points have no times" in capsys.readouterr().err
    assert not (tmp_path / "app.json").exists()


def _entry(folder: Path) -> str:
    path = folder / "made.toml"
    head = ['name = "made"', 'kind = "cluster"', 'title = "made"', 'source = "made"', "notes = []", "[values]"]
    rows = [f'{name} = {{ value = {value}, unit = "{unit}" }}' for name, (value, unit) in VALUES.items()]
    path.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
    return str(path)
