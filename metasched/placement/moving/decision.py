"""The rule: a job moves where its gain, less what the move costs, exceeds its doubt and is much of what is left.

A fraction ``d`` of the job is done; the whole job would take ``T`` here and ``T'`` elsewhere under the loads to come.
Staying takes (1 - d) T; moving takes the checkpoint, the transfer, the restart and the wait there, and (1 - d) T'.
Sanjay & Vadhiyar 2008, section 7, names rescheduling of this kind as future work; GridWay moves where the CPU falls
below a threshold, whatever that brings.

The doubt is that of the model. One that is wrong by a factor is wrong about here and there alike: that never turns gain
into loss, but less may be left than was thought. Doubts of another platform's model are independent of it and add up
as squares. Loads that turn after a move cost in proportion to what is left, so a move must save a good part of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from metasched.placement.clusters.running_jobs import OVERDUE
from metasched.plain_numbers import span
from metasched.records import check_seconds

#: A job stays for so many times what its restart costs after it has moved.
REST = 10.0
#: What a move must save of what is left. Chosen on the design seeds 1 to 4 of ``python -m benchmarks.moving``, where
#: jobs are done 30 % sooner than by never moving and 1 move of 60 is regretted. To ask for more than the loads to come
#: may be wrong by instead, as their forecasts say, brought 26 % with 5 regretted of 68.
WORTH = 0.5


@dataclass(frozen=True, slots=True)
class Costs:
    """What a move costs besides the run itself (s).

    Parameters
    ----------
    checkpoint : to write the state of the job, or the work since the last checkpoint that is lost.
    transfer : to bring the state to the other place.
    restart : until the job works again where it was taken to, its wait in the queue not counted.

    Examples
    --------
    >>> Costs(30.0, 20.0, 10.0).total
    60.0
    """

    checkpoint: float = 0.0
    transfer: float = 0.0
    restart: float = 0.0

    def __post_init__(self) -> None:
        for name in ("checkpoint", "transfer", "restart"):
            check_seconds(name, getattr(self, name))

    @property
    def total(self) -> float:
        """Checkpoint, transfer and restart together (s)."""
        return self.checkpoint + self.transfer + self.restart


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the whole job would take at one place under the loads to come (s).

    Parameters
    ----------
    execution_time : expected.
    model : how far below and above the expected time the model may be wrong, as factors: (0.9, 1.2).
    wait : until it would start there; 0 where it runs.
    """

    execution_time: float
    model: tuple[float, float] = (1.0, 1.0)
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a job should move, and why.

    Parameters
    ----------
    move : whether it should.
    done : the fraction of the job that is done.
    stay : what it has left here (s).
    leave : what it takes elsewhere, with costs and wait (s); None where there is no other place.
    gain, doubt : seconds that the move saves, and that this may be wrong by; None where there is no other place.
    costs : of the move.
    why : in words.
    """

    move: bool
    done: float
    stay: float
    leave: float | None
    gain: float | None
    doubt: float | None
    costs: Costs
    why: str


def done_until(before: float, elapsed: float, whole: float) -> float:
    """The fraction of a job that is done; one that runs for longer than was thought has a part of the rest left.

    Parameters
    ----------
    before : the fraction that was done when it last started.
    elapsed : since then (s).
    whole : what the whole job takes under the loads that it met since then (s).

    Examples
    --------
    >>> done_until(0.5, 30.0, 100.0), done_until(0.0, 200.0, 100.0)
    (0.8, 0.9)
    """
    return min(before + elapsed / whole, 1.0 - OVERDUE * (1.0 - before))


def decide(
    done: float,
    here: Outlook,
    there: Outlook | None,
    costs: Costs,
    *,
    moved_ago: float | None = None,
    same_model: bool = True,
) -> Decision:
    """Whether a job should move.

    Parameters
    ----------
    done : the fraction of it that is done, in [0, 1).
    here, there : the whole job under the loads to come, where it runs and at the best other place; None for no other.
    costs : of the move.
    moved_ago : how long ago it moved last (s); None where it never did.
    same_model : whether one model speaks for both places.

    Examples
    --------
    >>> busy, idle = Outlook(1000.0, (0.9, 1.1)), Outlook(400.0, (0.9, 1.1))
    >>> decide(0.2, busy, idle, Costs(10.0, 0.0, 20.0)).move
    True
    >>> decide(0.9, busy, idle, Costs(10.0, 0.0, 20.0)).why
    'the move would save 30.0 s, less than its uncertainty of 60.0 s'
    """
    left = 1.0 - done
    stay = left * here.execution_time
    if there is None:
        return Decision(False, done, stay, None, None, None, costs, "there is nowhere else to go")
    leave = costs.total + there.wait + left * there.execution_time
    gain = stay - leave
    faster = here.execution_time - there.execution_time
    # Where the model says too much, less is left: of a factor s of all times (s - done) / s is.
    shared = (left - max(here.model[0] - done, 0.0)) * max(faster, 0.0)
    doubt = shared if same_model else math.hypot(shared, left * there.execution_time * (there.model[1] - 1.0))
    rest = REST * costs.total
    if gain <= 0:
        move, why = False, f"the move would cost {span(leave - stay)} more than it saves"
    elif moved_ago is not None and moved_ago < rest:
        move, why = (
            False,
            f"it moved {span(moved_ago)} ago, and stays for at least {span(rest)}, ten times the cost of a move",
        )
    elif gain <= doubt:
        move, why = False, f"the move would save {span(gain)}, less than its uncertainty of {span(doubt)}"
    elif gain < WORTH * stay:
        move, why = (
            False,
            f"the move would save {gain / stay:.0%} of the remaining time, and is worthwhile from {WORTH:.0%} on",
        )
    else:
        move, why = True, f"the move saves {span(gain)}, more than its uncertainty of {span(doubt)}"
    return Decision(move, done, stay, leave, gain, doubt, costs, why)
