"""What ``metasched solve`` prints, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import call, refusal

REFERENCE = Path(__file__).parent.parent / "queueing" / "mva.json"


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "solve", *arguments)


def _write(path: Path, populations: tuple[int, ...], **station: Any) -> str:
    names = [f"c{index}" for index in range(len(populations))]
    case = {
        "stations": [{"name": "s", "service": dict.fromkeys(names, 0.5), **station}],
        "classes": [
            {"name": name, "population": jobs, "think_time": 1} for name, jobs in zip(names, populations, strict=True)
        ],
    }
    path.write_text(json.dumps(case), encoding="utf-8")
    return str(path)


def test_a_list_of_cases_is_answered_by_a_list_with_every_expected_number(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = _run(capsys, str(REFERENCE), "--json")
    assert (status, err) == (0, "")
    for answer, case in zip(json.loads(out), json.loads(REFERENCE.read_text(encoding="utf-8")), strict=True):
        assert answer["name"] == case["name"]
        assert answer["exact"] is True
        for name, value in case["expected"]["throughput"].items():
            assert answer["throughput"][name] == pytest.approx(value, rel=1e-9)
        for station, queues in case["expected"]["queue_length"].items():
            for name, value in queues.items():
                assert answer["queue_length"][station][name] == pytest.approx(value, rel=1e-9)


def test_one_case_is_answered_by_one_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = _run(capsys, _write(tmp_path / "n.json", (2,)), "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["method"] == "mean value analysis"
    assert answer["throughput"]["c0"] == pytest.approx(1.2)
    assert answer["cycle_time"]["c0"] == pytest.approx(2 / 3)
    assert answer["utilization"]["s"]["c0"] == pytest.approx(0.6)


def test_an_approximate_answer_comes_with_bounds_and_an_error_estimate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, _ = _run(capsys, _write(tmp_path / "n.json", (20, 30), servers=3), "--json", "--method", "approximate")
    answer = json.loads(out)
    assert status == 0
    assert (answer["method"], answer["exact"]) == ("linearizer", False)
    for name in ("c0", "c1"):
        bounds = answer["throughput_bounds"]
        assert bounds["lower"][name] <= answer["throughput"][name] <= bounds["upper"][name]
        assert 0 <= answer["error_estimate"][name] < 0.1


def test_a_population_too_large_for_an_exact_answer_is_named_with_its_need(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = _write(tmp_path / "n.json", (5000, 5000, 5000))
    status, out, err = _run(capsys, path, "--json", "--method", "exact")
    assert (status, out) == (2, "")
    assert re.search(r"population 5000 x 5000 x 5000 at 1 stations needs .* TiB", " ".join(err.split()))
    status, out, _ = _run(capsys, path, "--json")
    assert (status, json.loads(out)["method"]) == (0, "linearizer")


def test_without_json_a_table_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = _run(capsys, _write(tmp_path / "n.json", (2,)))
    assert status == 0
    assert "mean value analysis" in out
    assert "c0" in out


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"{", b'{"stations": 3}'])
def test_files_that_hold_no_network_end_with_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "n.json"
    if content is not None:
        path.write_bytes(content)
    assert "n.json" in refusal(_run(capsys, str(path), "--json"))


def test_a_device_without_end_is_not_read_to_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metasched.cli.solve.LONGEST", 1000)
    status, out, err = _run(capsys, "/dev/zero")
    assert (status, out, err) == (2, "", "metasched: /dev/zero: has more than 1000 bytes\n")
