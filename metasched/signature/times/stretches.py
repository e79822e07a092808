"""Stretches of a run between operations that all processes leave at once, of which those that are alike are run once.

When such an operation ends, all clocks stand alike, what was sent before has arrived, and links are free. So a stretch
takes as long whatever was done before it, and one that comes a thousand times takes a thousand times as long.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.times.clocks import ONE_BY_ONE
from metasched.signature.traces.exchanges import Exchanges, Operation, exchanges, of_all
from metasched.signature.traces.trace import Trace


def operations_once(trace: Trace, labels: Ints) -> tuple[Exchanges, Floats | None]:
    """The operations of the different stretches of a trace; how often each is done, shape (operations,), None for once.

    Where stretches share messages, or one waits for requests of another, every operation is there.

    Parameters
    ----------
    labels : of each event of the trace, what else tells it from others that are the same action.

    Raises
    ------
    InputError : as :func:`~metasched.signature.traces.exchanges.exchanges` does.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> turn = [("compute", (1e6,)), ("barrier", ())]
    >>> found, times = operations_once(trace_of({0: turn * 9, 1: turn * 9}), np.zeros(36, dtype=np.int64))
    >>> found.event.tolist(), times.tolist()
    ([0, 1, 18, 19], [9.0, 9.0, 9.0, 9.0])
    """
    stretch, times = _stretches(trace, labels)
    once = np.flatnonzero(times[stretch])
    if once.size < stretch.size:
        first = np.cumsum([each.size for each in trace.processes])[:-1]
        events = np.concatenate(trace.processes)[once]
        different = Trace(trace.table, tuple(np.split(events, np.searchsorted(once, first))))
        # Messages from one stretch to another may lack an end now.
        with suppress(InputError):
            found = exchanges(different)
            if _apart(found, stretch[once][found.event]):
                found = replace(found, event=once[found.event])
                return found, times[stretch[found.event]]
    return exchanges(trace), None


def _stretches(trace: Trace, labels: Ints) -> tuple[Ints, Floats]:
    """Which stretch each event is in; how often each stretch comes, or 0 where one like it came before."""
    of_shape = trace.shapes
    together = np.array([of_all(shape) for shape in trace.table.shapes], dtype=bool)[of_shape]
    at_once = [shape.name.lower().removeprefix("i") not in ONE_BY_ONE for shape in trace.table.shapes]
    at_once = together & np.array(at_once, dtype=bool)[of_shape]
    common = [at_once[process[together[process]]] for process in trace.processes]
    events = np.concatenate(trace.processes)
    if common[0].sum() < 2 or not all(np.array_equal(each, common[0]) for each in common):
        return np.zeros(events.size, dtype=np.int64), np.ones(1)
    ends, owner = at_once[events], np.repeat(np.arange(len(common)), [each.size for each in trace.processes])
    times = np.zeros(int(common[0].sum()) + 1)
    stretch = np.cumsum(ends) - ends - owner * (times.size - 1)
    sizes = np.bincount(stretch, minlength=times.size)
    if np.unique(sizes).size == sizes.size:
        return stretch, np.ones(sizes.size)
    # In all processes a stretch ends with its only such operation, so that what it has in a row tells who does what.
    order = np.argsort(stretch.astype(np.min_scalar_type(times.size)), kind="stable")
    content = (labels * len(of_shape) + events)[order]
    known: dict[bytes, int] = {}
    start = 0
    for place, end in enumerate(np.cumsum(sizes).tolist()):
        times[known.setdefault(content[start:end].tobytes(), place)] += 1
        start = end
    return stretch, times


def _apart(found: Exchanges, stretch: Ints) -> bool:
    """Whether all messages are received, and all requests waited for, in the stretch of the operation that posts them.

    Parameters
    ----------
    stretch : of each operation.
    """
    posted = stretch[(found.kind == Operation.send) | (found.kind == Operation.receive)]
    sent = np.zeros(found.size.size, dtype=np.int64)
    sent[found.message[found.sending]] = posted[found.sending]
    waits = np.flatnonzero(found.kind == Operation.wait)
    many = (found.end - found.request)[waits]
    requests = np.arange(many.sum()) + np.repeat(found.request[waits] - np.cumsum(many) + many, many)
    complete = np.zeros(posted.size, dtype=bool)
    complete[requests[np.repeat(stretch[waits], many) == posted[requests]]] = True
    return bool(complete.all()) and np.array_equal(sent[found.message], posted)
