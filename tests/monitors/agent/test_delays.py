"""Round trips between the members of a clique are noted in a file that `metasched network` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.records import InputError
from metasched.store.files import delays
from metasched.store.files.delays import read_delays
from monitors.agent.agent import Agent
from monitors.agent.delays import DelayFile
from monitors.agent.settings import Settings
from monitors.sensors.network.probe import Link


def settings(folder: Path, delays: Path) -> Settings:
    return Settings.model_validate({"node": "n1", "spool": folder / "agent.db", "interface": "lo", "delays": delays})


def test_an_agent_notes_the_round_trips_that_it_measured(tmp_path: Path) -> None:
    path = tmp_path / "delays.csv"
    agent = Agent(settings(tmp_path, path))
    for other, seconds in (("n2", 0.0002), ("n3", 0.0005)):
        agent._found(other, Link(90.0, seconds, 1000))
    assert read_delays(path) == ([("n1", "n2"), ("n1", "n3")], [0.0002, 0.0005])


def test_a_file_that_cannot_be_written_costs_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(settings(tmp_path, tmp_path / "no" / "file"))
    agent._found("n2", Link(90.0, 0.0002, 1000))
    assert "the delay to n2 is not recorded" in caplog.text


def test_the_file_is_bounded(tmp_path: Path) -> None:
    delays = DelayFile(tmp_path / "delays.csv", "n1", most=100)
    for number in range(50):
        delays.note("n2", 0.001 * (number + 1))
    assert (tmp_path / "delays.csv").stat().st_size <= 120
    assert (tmp_path / "delays.csv.old").stat().st_size <= 120
    assert len(read_delays(tmp_path / "delays.csv")[1]) > 0


def test_an_echo_that_took_no_time_is_left_out(tmp_path: Path) -> None:
    DelayFile(tmp_path / "delays.csv", "n1").note("n2", 0.0)
    assert not (tmp_path / "delays.csv").exists()


@pytest.mark.parametrize(("delay", "sound"), [("1e-30", True), ("9e-31", False), ("9e29", True), ("2e30", False)])
def test_delays_are_positive_and_finite_with_their_reciprocals(tmp_path: Path, delay: str, sound: bool) -> None:
    (tmp_path / "delays.csv").write_text(f"from,to,delay\na,b,{delay}\n")
    if sound:
        assert read_delays(tmp_path / "delays.csv") == ([("a", "b")], [float(delay)])
    else:
        with pytest.raises(InputError, match=r"row 2: delay is .*, expected a number from 1e-30 to 1e\+30$"):
            read_delays(tmp_path / "delays.csv")


def test_a_file_has_measurements_and_not_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delays, "MOST_DELAYS", 2)
    path = tmp_path / "delays.csv"
    path.write_text("from,to,delay\na,b,1\na,c,1\n")
    assert len(read_delays(path)[0]) == 2
    path.write_text("from,to,delay\na,b,1\na,c,1\nb,c,1\n")
    with pytest.raises(InputError, match=r"has more than 2 rows$"):
        read_delays(path)
    path.write_text("from,to,delay\n")
    with pytest.raises(InputError, match=r"has no row, expected one for each measurement$"):
        read_delays(path)
