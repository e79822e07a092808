"""Operations of traces: which requests a wait is for."""

import numpy as np

from metasched.signature.traces.exchanges import Operation, exchanges
from metasched.signature.traces.trace import trace_of


def test_a_wait_is_for_a_request_with_its_tag_and_no_other() -> None:
    program = [("irecv", (1, 5, 8, 0)), ("wait", (1, 0, 3)), ("wait", (1, 0, 5)), ("wait", (1, 0, 5))]
    found = exchanges(trace_of({0: program, 1: [("send", (0, 5, 8, 0))]}))
    waits = np.flatnonzero(found.kind[: found.first[1]] == Operation.wait)
    assert (found.end[waits] - found.request[waits]).tolist() == [0, 1, 0]


def test_waits_without_any_request_are_for_nothing() -> None:
    found = exchanges(trace_of({0: [("wait", (1, 0, 3)), ("waitall", ())], 1: [("compute", (1.0,))]}))
    assert (found.end - found.request).tolist() == [0, 0, 0]
