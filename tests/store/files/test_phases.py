from __future__ import annotations

import pytest

from metasched.records import InputError, PhaseMark, Run
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.phases import with_marks
from metasched.store.files.runs import write_runs

RUNS = (Run("two", "c8", 100, 1, 1.0, 90.0, 3.0), Run("two", "c8", 100, 2, 0.5, 80.0, 2.0))
HEADER = "run,phase,process,node,avg_avail_cpu,avg_avail_bw,execution_time\n"
GOOD = HEADER + "0,a,0,n0,1.0,90,3\n1,a,0,n0,0.5,80,2\n1,a,1,n1,0.9,85,1.5\n"


def test_marks_come_to_the_runs_beside_which_they_stand(tmp_path) -> None:
    write_runs(tmp_path / "runs.csv", RUNS)
    assert all(run.marks == () for run in read_campaign(tmp_path).runs)
    (tmp_path / "phases.csv").write_text(GOOD)
    one, two = read_campaign(tmp_path).runs
    assert one.marks == (PhaseMark("a", 0, 1.0, 90.0, 3.0),)
    assert two.marks == (PhaseMark("a", 0, 0.5, 80.0, 2.0), PhaseMark("a", 1, 0.9, 85.0, 1.5))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("2,a,0,n0,1.0,90,3", "run is 2, expected the number of one of 2 runs, from 0"),
        ("-1,a,0,n0,1.0,90,3", "run is -1, expected"),
        ("0.5,a,0,n0,1.0,90,3", "run is 0.5, expected"),
        ("0,a,1,n0,1.0,90,3", "process is 1, expected one of the 1 of run 0"),
        ("1,a,1,n0,1.0,90,3", "process 1 already has a mark in phase a of run 1"),
        ("0,,0,n0,1.0,90,3", "phase is empty"),
        ("0,b,0,n0,1.5,90,3", "avg_avail_cpu is 1.5, expected a fraction"),
        ("0,b,0,n0,1.0,90,soon", "execution_time is 'soon', expected a number"),
        ("0,b,0.5,n0,1.0,90,3", "process is 0.5, expected a whole number"),
        ("0,b,0,n0,1.0,90,nan", "execution_time is nan"),
    ],
)
def test_bad_marks_are_refused_by_row(tmp_path, row: str, says: str) -> None:
    (tmp_path / "phases.csv").write_text(GOOD + row + "\n")
    with pytest.raises(InputError) as refused:
        with_marks(RUNS, tmp_path / "phases.csv")
    assert f"{tmp_path / 'phases.csv'}, row 5: {says}" in str(refused.value)
