"""What ``metasched hardware`` prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call, refusal

from monitors.sensors import clocks


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "hardware", *arguments)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_a_block_is_answered_with_its_quantity_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    scattered = answered(capsys, "block", "galera-plus", "scatter", "--data-size", "1048576", "--nodes", "64")
    assert (scattered["time"], len(scattered["warnings"])) == (pytest.approx(105.61434e-6, rel=1e-6), 1)
    computed = answered(capsys, "block", "galera-plus", "compute", "--instructions", "11e6", "--threads", "25")
    assert computed == {"time": pytest.approx(25_509e-6), "warnings": []}
    drawn = answered(capsys, "block", "galera-plus", "power", "--threads", "24")
    assert drawn == {"power": pytest.approx(154.6), "warnings": []}
    survived = answered(capsys, "block", "galera-plus", "success", "--nodes", "192", "--duration", "86400")
    assert survived == {"probability": pytest.approx(0.9916844, abs=6e-8), "warnings": []}


def test_options_that_a_block_has_no_use_for_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "block", "kask", "p2p", "--data-size", "4", "--threads", "3", "--nodes", "2")
    assert found == (2, "", "metasched: p2p takes no --threads and no --nodes, expected --data-size\n")


def test_entries_are_listed_and_shown_with_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answered(capsys, "list", "--kind", "gpu")
    assert {each["kind"] for each in listed} == {"gpu"}
    shown = answered(capsys, "show", "kask")
    assert shown["values"]["T_bcast"]["value"] == -1.04
    assert shown["values"]["T_bcast"]["unit"] == "us"
    assert "Table 3" in shown["values"]["T_bcast"]["source"]
    assert shown["not_known"] == ["PW_low", "KW_low", "PW_hi", "KW_hi", "PW_max", "lambda"]


def test_this_host_becomes_an_entry_that_can_be_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "host.toml"
    made = answered(capsys, "detect", "-o", str(file))
    assert (made["name"], made["kind"]) == ("host", "cpu")
    assert answered(capsys, "show", str(file))["values"] == made["values"]


def test_an_entry_of_fitted_blocks_alone_is_shown_without_a_table_of_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "m.csv").write_text("block,value,instructions\ncompute,2e-9,1\n")
    file = tmp_path / "own.toml"
    assert run(capsys, "calibrate", str(tmp_path / "m.csv"), "-o", str(file))[0] == 0
    status, out, _ = run(capsys, "show", str(file))
    assert (status, out.splitlines()[:2]) == (0, ["own: calibrated with m.csv, robust", "compute: 1 term"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('D_tu = { value = 0, unit = "B" }', "values.D_tu is 0, expected a number above 0"),
        ('bandwidth = { value = 0, unit = "B/s" }', "values.bandwidth is 0, expected a number above 0"),
        ('lambda = { value = -1, unit = "1/s" }', "values.lambda is -1, expected a number of at least 0"),
    ],
)
def test_values_that_no_hardware_can_have_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, value: str, expected: str
) -> None:
    (tmp_path / "own.toml").write_text(f'kind = "cluster"\nsource = "x"\n[values]\n{value}\n')
    assert expected in refusal(run(capsys, "show", str(tmp_path / "own.toml")))


def test_the_clocks_of_a_host_are_shown_with_what_becomes_of_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = clocks.Clocks("acpi-cpufreq", ("ondemand",), (1200.0, 2400.0, 2401.0), 2400.0)
    monkeypatch.setattr(clocks, "read_clocks", lambda: known)
    found = answered(capsys, "clocks", "1200", "2000", "3000")
    assert found["held"] == [[1200.0, 1200.0], [2000.0, 2400.0], [3000.0, None]]
    assert (found["driver"], found["holding"]) == ("acpi-cpufreq", [1200.0, 2400.0])
    _, out, _ = run(capsys, "clocks", "1200", "2000", "3000")
    assert out.splitlines()[1:] == [
        "clocks that hold: 1200, 2400 MHz",
        "1200 MHz is held",
        "2000 MHz becomes 2400 MHz",
        "3000 MHz is not held",
    ]
    monkeypatch.setattr(clocks, "read_clocks", lambda: None)
    status, out, err = run(capsys, "clocks")
    assert (status, out) == (1, "")
    assert "this host sets no clocks" in err


def test_a_system_becomes_a_platform_of_simgrid(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    system = Path(__file__).resolve().parents[2] / "examples" / "simulation" / "figure2.toml"
    status, out, _ = run(capsys, "export", str(system), "--simgrid", str(tmp_path / "platform.xml"))
    assert (status, out) == (0, f"2561 hosts written to {tmp_path / 'platform.xml'}\n")
    assert "<!DOCTYPE platform" in (tmp_path / "platform.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["block", "gallera", "p2p", "--data-size", "1"], "there is no hardware 'gallera'"),
        (["block", "galera", "send", "--data-size", "1"], "there is no block 'send', expected one of compute, p2p"),
        (["block", "galera", "p2p", "--data-size", "-1"], "data size is -1"),
        (["block", "galera", "power", "--threads", "1"], "galera has no PW_low, KW_low"),
        (["show", "nowhere.toml"], "nowhere.toml: no such file"),
        (["detect", "-o", "host.json"], "expected a name that ends in .toml"),
    ],
)
def test_a_wrong_question_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert expected in refusal(run(capsys, *arguments))
