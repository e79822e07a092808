"""What runs leave open between two rules: the application by the other rule, and intervals that hold both."""

from __future__ import annotations

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_choices
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.trace import Trace, trace_of
from tests.signature.rules.test_open_partners import POWERS, Action, lines, run, started_prefix_sums, waited_each_time
from tests.signature.times.test_prediction import HERE


def rows_sent_on(n: int, last: int = 0) -> Trace:
    """Each process sends to the next one along the first side of a grid a part of a row; the other side is ``last``."""
    last = last or balanced(n, 2)[-1]
    size = 1_600_000 // last
    call: dict[int, Action] = {
        rank: ("sendRecv", (size, (rank + last) % n, size, (rank - last) % n, 6, 6)) for rank in range(n)
    }
    turns = {rank: [("compute", (1e7 / n,)), call[rank], ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


def test_an_interval_holds_the_times_on_both_grids_that_square_runs_do_not_tell_apart() -> None:
    application = fit([rows_sent_on(n) for n in (4, 16, 64)]).application
    assert not open_choices(application, [256])
    (choice,) = open_choices(application, [128])
    other = choice.other(application)
    assert other is not None
    both = [lines(sound(each, 128)) for each in (application, other)]
    assert sorted(both) == sorted(lines(rows_sent_on(128, last)) for last in (8, 16))
    engines = [by_blocks(each, HERE) for each in (application, other)]
    measured = {n: engines[0](n).time for n in (4, 16, 64)}
    (alone,) = predictions(engines[0], "blocks", [128], measured, True)
    (found,) = predictions(engines[0], "blocks", [128], measured, True, others=engines[1:])
    times = [each(128).time for each in engines]
    assert max(times) > 1.2 * min(times)
    assert not all(alone.interval[0] <= time <= alone.interval[1] for time in times)
    assert all(found.interval[0] < time < found.interval[1] for time in times)
    assert (found.execution_time, found.phases) == (alone.execution_time, alone.phases)


def test_the_other_choice_of_waits_that_no_run_put_to_the_test_waits_for_messages_only() -> None:
    application = fit([run(waited_each_time, n) for n in POWERS]).application
    (choice,) = open_choices(application, [200])
    other = choice.other(application)
    assert other is not None
    found = [lines(sound(each, 200)) for each in (application, other)]
    assert found == [lines(run(each, 200)) for each in (waited_each_time, started_prefix_sums)]
