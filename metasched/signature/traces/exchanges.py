"""A trace as operations: computation, posts of messages, waits for posts, collective operations.

A blocking call is a post and a wait for it. Messages are matched before any clock runs: the k-th from one process to
another with a tag is received by the k-th call that asks for it, as MPI promises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.traces.actions import AMONG_SOME, TYPE_BYTES, WITHOUT_DATA
from metasched.signature.traces.trace import Trace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Operation(IntEnum):
    """The kinds of operations: compute, send, receive, wait for posted requests, collective operation."""

    work = 0
    send = 1
    receive = 2
    wait = 3
    collective = 4


#: Calls that post a send; blocking ones wait for it.
SENDS = {"send": True, "ssend": True, "bsend": True, "rsend": True, "isend": False, "issend": False, "ibsend": False}
RECEIVES = {"recv": True, "irecv": False}
#: Tag of messages that tell none.
UNTAGGED = -1


@dataclass(frozen=True)
class Exchanges:
    """Operations of all processes, those of one after those of another.

    Parameters
    ----------
    first : array of shape (processes + 1,), where each process begins.
    kind, action, event : arrays of shape (operations,), what each is, its action, and which event of the trace it is
        part of.
    request : of a post its request, of a wait its first one, else 0.
    end : of a wait behind its last request, else 0.
    message, sending : arrays of shape (requests,), the message of each, and whether this end sends it.
    source, target, size : arrays of shape (messages,), ranks and bytes.
    half : array of shape (messages,), whether it has one end only.
    """

    first: Ints
    kind: Ints
    action: Ints
    event: Ints
    request: Ints
    end: Ints
    message: Ints
    sending: NDArray[np.bool_]
    source: Ints
    target: Ints
    size: Floats
    half: NDArray[np.bool_]


@dataclass(frozen=True)
class _Actions:
    """Of each action of a table: its operations, and what they need."""

    operations: Ints
    kinds: Ints
    peers: Ints
    tags: Ints
    sizes: Floats
    blocking: NDArray[np.bool_]
    wait: NDArray[np.bool_]
    waitall: NDArray[np.bool_]


def _read(trace: Trace) -> _Actions:
    """Three places for operations of each action."""
    table = trace.table
    many = len(table.shape)
    operations = np.ones(many, dtype=np.int64)
    kinds, peers = np.zeros((many, 3), dtype=np.int64), np.zeros((many, 3), dtype=np.int64)
    tags, sizes = np.full((many, 3), UNTAGGED, dtype=np.int64), np.zeros((many, 3))
    blocking, wait, waitall = (np.zeros(many, dtype=bool) for _ in range(3))

    def bytes_of(count: float, of: float) -> float:
        return max(float(count), 0.0) * TYPE_BYTES.get(int(of), 1)

    for action in range(many):
        shape, numbers = table.shapes[table.shape[action]], table.numbers[action]
        name = shape.name.lower()
        if name in SENDS or name in RECEIVES:
            if shape.nulls or len(numbers) < 3 or numbers[0] < 0:
                continue
            blocks = SENDS[name] if name in SENDS else RECEIVES[name]
            kinds[action, 0] = Operation.send if name in SENDS else Operation.receive
            peers[action, 0], tags[action, 0] = int(numbers[0]), int(numbers[1])
            sizes[action, 0] = bytes_of(numbers[2], numbers[3] if len(numbers) > 3 else -1)
            if blocks:
                operations[action], kinds[action, 1], blocking[action] = 2, Operation.wait, True
        elif name == "sendrecv" and len(numbers) == 6:
            sent, got = numbers[1] >= 0, numbers[3] >= 0
            place = 0
            for there, kind, peer, count, of in (
                (sent, Operation.send, numbers[1], numbers[0], numbers[4]),
                (got, Operation.receive, numbers[3], numbers[2], numbers[5]),
            ):
                if there:
                    kinds[action, place], peers[action, place] = kind, int(peer)
                    sizes[action, place] = bytes_of(count, of)
                    place += 1
            if place:
                operations[action], kinds[action, place], blocking[action] = place + 1, Operation.wait, True
        elif name == "wait" and len(numbers) == 3:
            # Both ranks together say of which message.
            kinds[action, 0], wait[action] = Operation.wait, True
            peers[action, 0], peers[action, 1], tags[action, 0] = (int(each) for each in numbers)
        elif name in ("waitall", "waitany"):
            kinds[action, 0], waitall[action] = Operation.wait, name == "waitall"
        elif not name.endswith(AMONG_SOME) and (name not in WITHOUT_DATA or name == "barrier"):
            kinds[action, 0] = Operation.collective
    return _Actions(operations, kinds, peers, tags, sizes, blocking, wait, waitall)


def _ordinals(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """A stable order of keys, the keys in it, and how many equal ones are before each, in the original order."""
    order = np.argsort(keys, kind="stable")
    ordered, places = keys[order], np.arange(keys.size)
    starts = np.maximum.accumulate(np.where(np.diff(ordered, prepend=ordered[:1] - 1) != 0, places, 0))
    ordinal = np.empty(keys.size, dtype=np.int64)
    ordinal[order] = places - starts
    return order, ordered, ordinal


def exchanges(trace: Trace, halves: bool = False) -> Exchanges:
    """The operations of a trace.

    Parameters
    ----------
    trace : what is done.
    halves : whether messages may have one end only.

    Raises
    ------
    InputError
        When messages are sent that nobody receives, or the other way round, unless there may be halves, or a wait is
        for no request.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> found = exchanges(trace_of({0: [("send", (1, 0, 10, 0))], 1: [("recv", (0, 0, 10, 0))]}))
    >>> [Operation(each).name for each in found.kind], found.size.tolist()
    (['send', 'wait', 'receive', 'wait'], [80.0])
    """
    read = _read(trace)
    count = len(trace.processes)
    events = np.concatenate(trace.processes).astype(np.int64)
    owner = np.repeat(np.arange(count), [each.size for each in trace.processes])
    many = read.operations[events]
    event, action, process = (np.repeat(each, many) for each in (np.arange(events.size), events, owner))
    place = np.arange(event.size) - np.repeat(np.cumsum(many) - many, many)
    kind = read.kinds[action, place]
    first = np.concatenate([[0], np.cumsum(np.bincount(process, minlength=count))])

    posting = (kind == Operation.send) | (kind == Operation.receive)
    posts, before = np.flatnonzero(posting), np.cumsum(posting)
    number = np.zeros(event.size, dtype=np.int64)
    number[posts] = np.arange(posts.size)
    sending = kind[posts] == Operation.send
    posted = action[posts], place[posts]
    peer, mine = read.peers[posted], process[posts]
    if peer.size and peer.max() >= count:
        raise InputError(f"a message goes to or comes from process {int(peer.max())} of {count}")
    known, tag = np.unique(read.tags[posted], return_inverse=True)
    tag = tag.reshape(-1)
    source, target = np.where(sending, mine, peer), np.where(sending, peer, mine)
    message = _matched(source, target, tag, sending, known.size, count, halves)

    request, end = number.copy(), np.zeros(event.size, dtype=np.int64)
    own = np.flatnonzero((kind == Operation.wait) & read.blocking[action])
    request[own], end[own] = before[own] - place[own], before[own]
    # Non-blocking requests are waited for one by one, or all that were posted since the last time.
    loose = ~read.blocking[posted[0]]
    everything = np.flatnonzero(read.waitall[action] & (kind == Operation.wait))
    epoch = np.cumsum(read.waitall[action])
    waits = np.flatnonzero(read.wait[action])
    if waits.size:
        tags = np.searchsorted(known, read.tags[action[waits], 0])
        asked = _key(
            process[waits], read.peers[action[waits], 0], read.peers[action[waits], 1], tags, count, known.size
        )
        given = _key(mine[loose], source[loose], target[loose], tag[loose], count, known.size)
        numbers = np.flatnonzero(loose)
        span = int(epoch[-1]) + 1
        asked, given = asked * span + epoch[waits], given * span + epoch[posts[loose]]
        order, ordered, _ = _ordinals(given)
        _, _, ordinal = _ordinals(asked)
        at = np.searchsorted(ordered, asked, side="left") + ordinal
        fits = at < ordered.size
        fits[fits] = ordered[at[fits]] == asked[fits]
        # What was waited for before, or came from nobody, is done.
        request[waits], end[waits] = 0, 0
        request[waits[fits]] = numbers[order[at[fits]]]
        end[waits[fits]] = request[waits[fits]] + 1
    if everything.size:
        earlier = np.concatenate([[-1], everything[:-1]])
        begin = np.where(process[earlier] == process[everything], earlier, first[process[everything]] - 1)
        begin[0] = first[process[everything[0]]] - 1
        request[everything] = np.where(begin >= 0, before[np.maximum(begin, 0)], 0)
        end[everything] = before[everything]
    sizes = np.zeros(int(message.max(initial=-1)) + 1)
    of, to = (np.zeros(sizes.size, dtype=np.int64) for _ in range(2))
    size = read.sizes[posted]
    # The sender's size counts, where it is there.
    for ends in (~sending, sending):
        sizes[message[ends]] = size[ends]
        of[message[ends]], to[message[ends]] = source[ends], target[ends]
    half = np.bincount(message, minlength=sizes.size) < 2
    return Exchanges(first, kind, action, event, request, end, message, sending, of, to, sizes, half)


def _key(process: Ints, source: Ints, target: Ints, tag: Ints, count: int, tags: int) -> Ints:
    # One of the two ranks is the process itself.
    other, sends = np.where(source == process, target, source), source == process
    return np.asarray(((process * (count + 1) + other) * 2 + sends) * (tags + 1) + tag)


def _matched(
    source: Ints, target: Ints, tag: Ints, sending: NDArray[np.bool_], tags: int, count: int, halves: bool
) -> Ints:
    """The message of each request: sends and receives of one key in their order."""
    message = np.zeros(source.size, dtype=np.int64)
    if 2 * int(sending.sum()) == source.size:
        for key in ((source * count + target) * (tags + 1) + tag, source * count + target):
            sent, got = np.argsort(key[sending], kind="stable"), np.argsort(key[~sending], kind="stable")
            if np.array_equal(key[sending][sent], key[~sending][got]):
                message[np.flatnonzero(sending)[sent]] = np.arange(sent.size)
                message[np.flatnonzero(~sending)[got]] = np.arange(sent.size)
                return message
    if not halves:
        raise InputError("messages are sent that nobody receives, or the other way round")
    # The k-th send of a key with its k-th receive, and what is left by itself.
    _, key = np.unique((source * count + target) * (tags + 1) + tag, return_inverse=True)
    ordinal = np.zeros(source.size, dtype=np.int64)
    for ends in (sending, ~sending):
        _, _, ordinal[ends] = _ordinals(key.reshape(-1)[ends])
    _, message = np.unique(np.stack([key.reshape(-1), ordinal]), axis=1, return_inverse=True)
    return message.reshape(-1).astype(np.int64)
