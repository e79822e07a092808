"""Fitting an application to traces of a few process counts: the rules of whole programs, else of their parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from metasched.records import InputError
from metasched.signature.computation.workloads import one_workload
from metasched.signature.rules.fits import Fit
from metasched.signature.rules.larger_runs import explains, grows, is_believed
from metasched.signature.rules.program_parts import in_parts
from metasched.signature.rules.whole_programs import FEWEST, completed_program, from_another, other_roles, whole_program
from metasched.signature.traces.message_order import put_in_order
from metasched.signature.traces.trace import Trace

#: From which share of calls with rules on a whole program is not tried again with its messages in order.
NEARLY = 0.95


def fit(traces: Sequence[Trace], timed: bool = False) -> Fit:
    """Find the rules that traces of different counts share.

    Parameters
    ----------
    traces : one of each count.
    timed : whether computation is known from measured times, which follow no rule to the last digit: a power law of n
        is taken for each, and a total that rises and falls says nothing of the workload.

    Raises
    ------
    InputError
        When there are fewer than three different counts, or the programs differ.
    """
    by_count = {len(trace.processes): trace for trace in traces}
    counts = sorted(by_count)
    for count, many in Counter(len(trace.processes) for trace in traces).items():
        if many > 1:
            raise InputError(f"there are {many} signatures of {count} processes, expected one of each number")
    if len(counts) < FEWEST:
        listed = ", ".join(map(str, counts))
        raise InputError(
            f"there are signatures of {listed} processes, expected at least {FEWEST} different counts: each run "
            "alone still gives its phases and weights (metasched signature extract)"
        )
    ordered = [by_count[count] for count in counts]
    _same_program(ordered, timed)
    completion = cache(partial(completed_program, ordered, timed))
    found = whole_program(ordered, timed, completion)
    believed = found is not None and is_believed(found)
    if found is not None and believed and explains(found):
        return found
    if (whole := completion() or from_another(ordered, timed)) is not None and (not believed or explains(whole)):
        return whole
    if found is not None and believed:
        return found
    if found is not None and found.partners and (other := other_roles(ordered, timed)) is not None:
        return other
    again = None
    # Where nearly all messages follow rules as they are, a few places need another order: its parts tell which.
    nearly = found is not None and not found.partners and grows(found) and found.calls_ruled >= NEARLY
    # As they are, these were searched already.
    moved = None if nearly else put_in_order(ordered)
    if moved is not None and (again := whole_program(moved, timed, completion)) is not None:
        again = replace(again, in_order=True)
        if is_believed(again):
            return again
    parts = in_parts(ordered, timed)
    found = max(
        filter(None, (found, again, parts)),
        # Rules of all partners of whole programs that are still here do not hold in larger runs.
        key=lambda each: (grows(each) and (each is parts or not each.partners), each.partners, each.ruled),
        default=None,
    )
    if found is None:
        raise InputError(
            "the processes have no roles that grids of these counts explain, or their programs differ: expected runs "
            "of one program with one workload"
        )
    return found


def _same_program(traces: Sequence[Trace], timed: bool) -> None:
    """Refuse traces of different programs, some of whose actions others lack, or of different workloads."""
    names = [_names(trace) for trace in traces]
    for trace, has in zip(traces[1:], names[1:], strict=True):
        if odd := sorted(has ^ names[0]):
            have, not_have = (trace, traces[0]) if odd[0] in has else (traces[0], trace)
            raise InputError(
                f"the run of {len(have.processes)} processes calls {odd[0]} and that of {len(not_have.processes)} "
                "never does, expected signatures of one program"
            )
    totals = {len(trace.processes): trace.instructions for trace in traces}
    if not timed and not one_workload(totals):
        listed = ", ".join(f"{total:g} with {n}" for n, total in totals.items())
        raise InputError(
            f"the instructions of all processes together are {listed} processes, expected runs with one workload, "
            "whose total stays or drifts without a jump"
        )


def _names(trace: Trace) -> set[str]:
    """The names of all that is done in a trace."""
    done = np.unique(np.concatenate([np.zeros(0, dtype=np.int32), *map(np.unique, trace.processes)]))
    return {trace.table.shapes[trace.table.shape[action]].name for action in done.tolist()}
