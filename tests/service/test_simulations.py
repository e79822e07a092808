"""Simulations that users ask the daemon for: what comes of them, what is refused and where, and their limits."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from metasched.service import simulations
from metasched.service.dashboard.simulation import APPLICATION, SYSTEM, content, entries, read_form
from metasched.service.refusals import TooMuchError
from metasched.service.simulations import Asked, Kept, Simulations, Wrong


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time to start a process."""
    monkeypatch.setattr(simulations, "PATIENCE", 100.0)


@pytest.mark.usefixtures("patient")
def test_a_simulation_is_run_and_kept_for_its_client_alone() -> None:
    kept = Simulations()
    came = kept.run(Asked(SYSTEM, APPLICATION, ("slave=50",), ("rounds=2",)), "ann", 5.0)
    assert isinstance(came, Kept)
    assert came.result["labels"]["slave"]["processes"] == 50
    assert came.result["energy"] > 0
    assert (kept.of("ann"), kept.of("bob")) == ([came], [])


@pytest.mark.usefixtures("patient")
def test_what_is_wrong_is_named_with_its_text_and_line() -> None:
    wrong = Simulations().run(Asked(SYSTEM, "def master():\n    pass\n\ndef slave():\n    fly(3)\n"), "ann", 5.0)
    assert isinstance(wrong, Wrong)
    assert (wrong.text, wrong.line) == ("application", 5)
    shown = content(Asked(SYSTEM, "def master():\n    pass\n\ndef slave():\n    fly(3)\n"), wrong, [])
    assert [(number, here) for number, _, here in shown["marked"] if here] == [(5, True)]


@pytest.mark.parametrize(
    ("asked", "text", "told"),
    [
        (Asked("", APPLICATION), "system", "is empty"),
        (Asked(SYSTEM, "x" * 70_000), "application", "has more than 65536 bytes"),
        (Asked(SYSTEM, APPLICATION, ("--help",)), "", "expected NAME=NUMBER"),
        (Asked(SYSTEM, APPLICATION, (), ("a=1",) * 40), "", "expected at most 32"),
    ],
)
def test_what_can_be_seen_to_be_wrong_starts_no_process(
    asked: Asked, text: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "_simulated", None)
    wrong = Simulations().run(asked, "ann", 5.0)
    assert isinstance(wrong, Wrong)
    assert wrong.text == text
    assert told in wrong.why


@pytest.mark.parametrize(
    ("asked", "text", "told"),
    [
        (Asked("[[network\n", APPLICATION), "system", "line 1"),
        (Asked(SYSTEM.replace("i7-2600k", "/etc/secret.toml"), APPLICATION), "system", "is a file, expected an entry"),
        (Asked(SYSTEM.replace("ethernet-1g", "own.toml"), APPLICATION), "system", "is a file, expected an entry"),
        (Asked("a." * 3000 + "a = 1", APPLICATION), "system", "network is missing"),
        (
            Asked(SYSTEM, "def master():\n    x = (0 - 8) ** 0.5\n    compute(x)\n\ndef slave():\n    pass\n"),
            "application",
            "line 2",
        ),
    ],
)
@pytest.mark.usefixtures("patient")
def test_what_users_wrote_is_read_by_a_process_of_its_own(asked: Asked, text: str, told: str) -> None:
    wrong = Simulations().run(asked, "ann", 5.0)
    assert isinstance(wrong, Wrong)
    assert wrong.text == text
    assert told in wrong.why


@pytest.mark.usefixtures("patient")
def test_a_simulation_leaves_no_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python replaces compiled modules by what a limit of file sizes let it write.
    (tmp_path / "sitecustomize.py").write_text("import os\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    Simulations().run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert [*tmp_path.iterdir()] == [tmp_path / "sitecustomize.py"]


def test_a_simulation_that_takes_too_long_or_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "PATIENCE", 0.2)
    slow = Simulations().run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert slow == Wrong("it took longer than 0.2 s, and was stopped")
    monkeypatch.setattr(simulations, "PATIENCE", 100.0)
    monkeypatch.setattr(simulations, "MEMORY", 60 * 2**20)
    large = Simulations().run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert isinstance(large, Wrong)
    assert large.why.startswith("it needs more than 60 MB, has a result of more than 4 MB, or failed: ")
    monkeypatch.undo()
    monkeypatch.setattr(simulations, "PATIENCE", 100.0)
    monkeypatch.setattr(simulations, "MOST_RESULT", 100)
    long = Simulations().run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert isinstance(long, Wrong)
    assert long.why.endswith("or failed: standard output: file too large")


def test_the_oldest_results_are_forgotten_where_all_would_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "MOST_KEPT", 3000)
    monkeypatch.setattr(simulations, "KEPT", 4)
    kept, length = Simulations(), 1000
    monkeypatch.setattr(simulations, "_simulated", lambda asked: {"runs": length * "x"})
    for _ in range(5):
        kept.run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert [each.number for each in kept.of("ann")] == [5, 4]
    length = 10
    for _ in range(6):
        kept.run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    assert [each.number for each in kept.of("ann")] == [11, 10, 9, 8]


def test_only_so_many_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Simulations()

    def more(asked: Asked) -> dict[str, object]:
        if len(depth) < simulations.AT_ONCE:
            depth.append(1)
            kept.run(asked, "ann", 5.0)
        return {}

    depth = [1]
    monkeypatch.setattr(simulations, "_simulated", more)
    kept.run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    depth.clear()
    with pytest.raises(TooMuchError, match="2 simulations are running"):
        kept.run(Asked(SYSTEM, APPLICATION), "ann", 5.0)
    monkeypatch.setattr(simulations, "_simulated", lambda asked: {})
    assert isinstance(kept.run(Asked(SYSTEM, APPLICATION), "ann", 5.0), Kept)


def test_a_form_is_read_whatever_it_holds() -> None:
    asked = read_form(b"system=a%0D%0Ab&application=c&processes=x=1+y=2&variables=&other=9")
    assert asked == Asked("a\nb", "c", ("x=1", "y=2"), ())
    assert read_form(b"\xff&&=;") == Asked("", "")
    long = "".join(f"# \u00e9{number:05d}\r\n" for number in range(6500))
    whole = read_form(urlencode({"system": long, "application": long, "processes": "x=1"}).encode())
    assert whole == Asked(long.replace("\r\n", "\n"), long.replace("\r\n", "\n"), ("x=1",))
    assert "ethernet-1g" in {name for name, _, _ in entries()}
