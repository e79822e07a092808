"""Configuration, marks in comments, and the placer's shadows."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from metasched.placement.running import StartedJob
from metasched.records import InputError, Load
from metasched.service.configuration import read_configuration
from metasched.service.matching import mark_of, match
from metasched.service.messages import Ask
from metasched.store.downsampling import mean_loads
from metasched.store.engine import reading
from metasched.store.jobs import EndedJob, Mark, read_mark
from metasched.store.placements import Advice
from metasched.store.tables import FIVE_MINUTES, LoadMeanRow
from tests.service.made import running


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('mode = "dare"', "mode is 'dare'"),
        ("[listen]\nport = 70000", "listen.port is 70000"),
        ("[listen]\nprot = 1", "listen.prot is not a key known here"),
        ("level = 1.0", "level is 1.0"),
        ('[listen]\ncertificate = "c.pem"', "certificate and key"),
        ("a = [", "not valid TOML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_field(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as refused:
        read_configuration(path)
    assert str(path) in str(refused.value)


def test_relative_paths_start_at_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text('database = "m.db"\nclusters = "c.toml"\n[listen]\nsocket = "s"\n')
    read = read_configuration(path)
    assert (read.database, read.clusters) == (str(tmp_path / "m.db"), str(tmp_path / "c.toml"))
    assert read.listen.socket == str(tmp_path / "s")


@given(st.text())
def test_any_comment_is_read_or_passed_over(comment: str) -> None:
    mark = read_mark("metasched:" + comment)
    assert mark is None or mark.problem_size > 0


def test_a_mark_is_read_wherever_it_stands() -> None:
    expected = Mark("a.out", 12.5, 8, "0f")
    assert read_mark("please metasched:app=a.out,n=12.5,p=8,placement=0f now") == expected
    assert read_mark("metasched:app=$(reboot),n=5") is None
    assert read_mark("metasched:app=cg,n=nan") is None


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(1, 3)), min_size=1, max_size=12))
def test_every_job_finds_a_placement_of_its_own(made: list[tuple[float, int]]) -> None:
    """Jobs of one user and name, submitted one after the other, are matched one to one, and none to one of another."""
    asked = {"scheduler": "c", "user": "1", "name": "x", "problem_size": 5.0}
    at, advised, jobs = 0.0, [], []
    for number, (pause, processors) in enumerate(made):
        at += pause
        advised.append(Advice(f"{number:02x}", at, "cg", asked | {"processors": [processors]}, {}))
        submitted = float(int(at + 0.02))
        jobs.append(EndedJob("c", str(number), "", "p", ("n",), processors, at + 5, at + 9, 0, "1", "x", submitted))
        other = EndedJob("c", "x", "", "p", ("n",), processors, at + 5, at + 9, 0, "2", "x", submitted)
        assert match(other, advised) is None
    for job in jobs:
        found = match(job, advised)
        assert found is not None
        assert abs(found.made_at - (job.submitted or 0.0)) <= 2.5
        advised.remove(found)
    assert not advised


def test_a_marked_job_is_not_matched_to_a_placement_of_another_size() -> None:
    asked = {"scheduler": "c", "user": "1", "name": "", "problem_size": 5.0, "processors": [2]}
    job = EndedJob("c", "9", "metasched:app=cg,n=6", "p", ("n",), 2, 100.0, 101.0, 0, "1", "", 50.0)
    advice = Advice("0a", 50.2, "cg", asked, {})
    assert match(job, [advice]) is None
    assert match(replace(job, comment="metasched:app=cg,n=5"), [advice]) is advice
    assert mark_of(advice) == Mark("cg", 5.0, 2, "0a")


def test_acting_spreads_a_burst_over_the_nodes(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        ask = Ask(application="cg", problem_size=1400, processors=[4], per_node=4)
        answers = [daemon.placer.answer(ask, time.time()) for _ in range(4)]
    assert len({answer.nodes for answer in answers}) == 4


def test_the_daemon_rolls_up_what_came_in_by_itself(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, periods={"means": 0.2}) as daemon:
        now = time.time()
        daemon.writer.loads([Load(now - 900.0 + 10 * k, "e1", 0.25, 90.0) for k in range(60)]).result()

        def means() -> int:
            with reading(daemon.store.engine) as connection:
                return connection.scalar(select(func.count()).select_from(LoadMeanRow)) or 0

        end = time.monotonic() + 60.0
        while means() < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        kept = mean_loads(daemon.store, FIVE_MINUTES, since=now - 1800.0, until=now)
        assert set(kept.available_cpu) == {0.25}


def test_a_placement_keeps_away_from_jobs_that_fill_the_links(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        ask = Ask(application="cg", problem_size=1900, processors=[4], per_node=1)
        alone = daemon.placer.answer(ask, time.time())
        assert alone.placement is not None
        assert (alone.placement["slowdown"], alone.warnings) == (1.0, [])
        nodes = tuple(f"e{index}" for index in range(1, 5))
        jobs = [StartedJob(nodes, (2,) * 4, 1.0, "cg", 9e4), StartedJob(("e1",), (1,), 1.0, "lu", 5.0)]
        daemon.board.put_running("cluster east", jobs, time.time())
        daemon.refresh()
        shared = daemon.placer.answer(ask, time.time())
        assert shared.placement is not None
        assert shared.placement["slowdown"] > 1.02
        assert f"{shared.placement['slowdown']:.2f} times as long as alone" in shared.message
        assert shared.warnings == ["1 job on east is taken not to share, since it has no model: lu"]
