"""Kinds of messages: by place in a phase, by size, and whether they stay within a node.

Alike messages of all processes take as long as those of them that the synthetic signature measures (section 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metasched.arrays import Ints
from metasched.signature.rules.expanding import Sample
from metasched.signature.times.clocked_runs import phases_of_sample
from metasched.signature.traces.exchanges import Exchanges, Operation


class MessageKind(NamedTuple):
    """A kind of messages, which are taken to need the same time.

    Parameters
    ----------
    phase : of the sender.
    place : which event of an execution of the phase sends it.
    size : bytes.
    local : whether sender and receiver share a node.
    """

    phase: int
    place: int
    size: float
    local: bool


def kinds_of(sample: Sample, found: Exchanges, per_node: int) -> tuple[list[MessageKind], Ints]:
    """The kinds of a sample's messages, and which of them each message is of, -1 where it has one end only.

    Parameters
    ----------
    sample, found : the events, and the same as operations.
    per_node : processes on each node, in the order of their ranks.
    """
    _, _, phases, places = phases_of_sample(sample)
    posts = np.flatnonzero((found.kind == Operation.send) | (found.kind == Operation.receive))
    posts = posts[found.sending[found.request[posts]]]
    message, event = found.message[found.request[posts]], found.event[posts]
    columns = np.zeros((found.size.size, 4))
    columns[message, 0], columns[message, 1] = phases[event], places[event]
    columns[:, 2], columns[:, 3] = found.size, found.source // per_node == found.target // per_node
    different, inverse = np.unique(columns[~found.half], axis=0, return_inverse=True)
    which = np.full(found.half.size, -1, dtype=np.int64)
    which[~found.half] = inverse.reshape(-1)
    kinds = [MessageKind(int(p), int(at), float(size), bool(local)) for p, at, size, local in different.tolist()]
    return kinds, which
