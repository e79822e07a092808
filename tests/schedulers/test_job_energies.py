"""Which jobs the accounting of Slurm is asked about, so that those who shared a node share its energy."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.schedulers.slurm.commands import utc_time
from metasched.schedulers.slurm.job_energies import JobEnergies

JOBS = {  # number: nodes, processors, start, end, processor time (s), joules
    "7": ("n[1-2]", 4, 100, 200, "03:20", 2000),
    "8": ("n3", 2, 50, 250, "01:40", 800),
    "9": ("n3", 2, 60, 240, "05:00", 800),
    "10": ("n4", 2, 300, 400, "01:40", 500),
}
EVERYWHERE = {f"n{number}": 4 for number in range(1, 5)}


class Accounting:
    """sacct, which finds jobs by their numbers, or by nodes and times."""

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.fails = fails

    def table(self, columns: tuple[str, ...], *words: str) -> list[dict[str, str]]:
        self.asked.append(words)
        if self.fails and len(self.asked) > 1:
            raise RuntimeError("sacct is away")
        wanted = words[2].removeprefix("--jobs=").split(",") if words[2].startswith("--jobs=") else ["8", "9"]
        return [
            dict(zip(columns, (number, str(cpus), nodes, str(start), str(end), used, str(joules)), strict=True))
            for number, (nodes, cpus, start, end, used, joules) in JOBS.items()
            if number in wanted
        ]


def energies(accounting: Accounting) -> JobEnergies:
    known: Any = accounting
    configuration: Any = type("", (), {"now": lambda _: {"AcctGatherEnergyType": "acct_gather_energy/ipmi"}})()
    return JobEnergies("c", known, configuration, None)


def test_only_jobs_that_shared_nodes_are_asked_about_with_all_that_were_there_meanwhile() -> None:
    accounting = Accounting()
    found = energies(accounting).of(["7", "8"], EVERYWHERE | {"n1": 2, "n2": 2})
    times = f"--starttime={utc_time(50.0)}", f"--endtime={utc_time(251.0)}"
    assert accounting.asked == [
        ("sacct", "--allusers", "--jobs=7,8"),
        ("sacct", "--allusers", "--nodelist=n3", *times),
    ]
    assert found["7"] == pytest.approx(2000.0)
    assert 0.0 < found["8"] < 800.0


def test_nodes_of_several_jobs_are_asked_about_from_the_first_start_to_the_last_end() -> None:
    accounting = Accounting()
    energies(accounting).of(["8", "10"], EVERYWHERE)
    times = f"--starttime={utc_time(50.0)}", f"--endtime={utc_time(401.0)}"
    assert accounting.asked[1] == ("sacct", "--allusers", "--nodelist=n[3-4]", *times)


def test_what_the_accounting_does_not_answer_is_no_energy() -> None:
    assert energies(Accounting(fails=True)).of(["8"], EVERYWHERE) == {}
