"""``metasched signature mark``: recorded phases become the marks that phased models learn from."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from command_line import call

from metasched.records import Run
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.recorded_traces import HEADER
from metasched.store.files.runs import write_runs

COUNTS, SIZES = (1, 2, 4), (100.0, 200.0, 400.0)


def recorded(folder: Path, n: float, count: int, how: str = "end") -> float:
    """Writes a run of two loops, of 10 and of 20 turns: work in proportion to N, and to its square; its time (s)."""
    first, second = 1e-4 * n / count, 1e-6 * n**2 / count
    duration = 10 * first + 20 * second + 0.002
    folder.mkdir(parents=True)
    lines = [HEADER, "", "instructions time", f"duration {duration}"]
    lines += [f"a {each}" for each in ("init", "barrier", "allreduce 8 0 0 -1", "finalize")]
    lines += [f"t 1 1 9 {round(9e9 * first)}", f"t 0 1 1 {round(1e9 * first)}"]
    lines += [f"t 2 2 19 {round(19e9 * second)}", f"t 1 2 1 {round(1e9 * second)}"]
    # Each loop holds two calls, so that neither is a call that is repeated by itself.
    lines += ["b 1 1", "b 2 2", "p 0 0x5 1x10 3", how, ""]
    for rank in range(count):
        lines[1] = f"process {rank} {count}"
        (folder / f"rank-{rank}").write_text("\n".join(lines))
    return duration


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    Path("campaign").mkdir()
    runs = []
    for n in SIZES:
        for count in COUNTS:
            time = recorded(Path(f"{n:g}-{count}"), n, count)
            runs.append(Run("two", "c", n, count, 0.9, 95.0, time))
    write_runs("campaign/runs.csv", runs)

    return partial(call, capsys)


def test_a_phased_model_needs_no_marks_by_hand(told: Callable[..., tuple[int, str, str]]) -> None:
    row = 0
    for n in SIZES:
        for count in COUNTS:
            status, out, _ = told("signature", "mark", f"{n:g}-{count}", "campaign", "--run", row, "--json")
            assert (status, json.loads(out)["run"]) == (0, row)
            row += 1
    marked = read_campaign("campaign").runs
    assert [len(run.marks) for run in marked] == [2 * run.processors for run in marked]
    last = marked[-1]
    by_phase: dict[str, float] = {}
    for mark in last.marks:
        assert (mark.avg_avail_cpu, mark.avg_avail_bw) == (0.9, 95.0)
        by_phase[mark.phase] = max(by_phase.get(mark.phase, 0.0), mark.execution_time)
    assert [*by_phase.values()] == pytest.approx([10 * 1e-4 * 100, 20 * 1e-6 * 160000 / 4], rel=0.05)
    assert sum(by_phase.values()) == pytest.approx(last.execution_time, rel=0.01)
    status, out, _ = told("fit", "campaign", "-o", "m.json", "--method", "phased", "--json")
    assert status == 0
    assert len(json.loads(out)["phases"]) == 2
    status, out, _ = told("predict", "m.json", "--problem-size", 800, "--processors", 4, "--json")
    assert json.loads(out)["execution_time"] == pytest.approx(10 * 0.02 + 20 * 0.16 + 0.002, rel=0.15)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("100-2", "campaign"), "has 3 runs of 2 processors without marks, give --run"),
        (("100-2", "campaign", "--run", 0), "--run is 0, expected a run of 2 processors without marks, such as 1"),
        (("cut", "campaign", "--run", 1), "process 0 did not end normally"),
        (("none", "campaign"), "none"),
        (("100-2", "none"), "none"),
        (("100-2", "packed"), "phases.csv.gz: is compressed"),
        (("other", "campaign", "--run", 4), "expected runs of one program"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    told: Callable[..., tuple[int, str, str]], words: tuple[object, ...], line: str
) -> None:
    recorded(Path("cut"), 100.0, 2, "cut")
    Path("packed").mkdir()
    Path("packed/phases.csv.gz").touch()
    Path("other").mkdir()
    for rank in range(2):
        lines = [HEADER, f"process {rank} 2", "instructions time", "duration 1", "a init", "a finalize", "p 0 1", "end"]
        Path(f"other/rank-{rank}").write_text("\n".join([*lines, ""]))
    if words[0] == "other":
        assert told("signature", "mark", "100-2", "campaign", "--run", 1)[0] == 0
    before = sorted(Path("campaign").iterdir()), [each.read_text() for each in sorted(Path("campaign").iterdir())]
    status, _, err = told("signature", "mark", *words)
    assert status == 2
    assert line in err.replace("\n", " ")
    assert err.count("metasched") == 1
    assert "Traceback" not in err
    assert before == (
        sorted(Path("campaign").iterdir()), [each.read_text() for each in sorted(Path("campaign").iterdir())]
    )  # fmt: skip
