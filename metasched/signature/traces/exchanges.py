"""A trace as operations: computation, posts of messages, waits for posts, collective operations.

A blocking call is a post and a wait for it. Messages are matched before any clock runs: the k-th from one process to
another with a tag is received by the k-th call that asks for it, as MPI promises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.records import InputError
from metasched.signature.traces.actions import AMONG_SOME, TYPE_BYTES, WITHOUT_DATA, ActionTable, Shape
from metasched.signature.traces.trace import Trace


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
#: Actions that are no operation of several processes.
NO_OPERATIONS = {*SENDS, *RECEIVES, "sendrecv", *WITHOUT_DATA} - {"barrier"}
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
    sending: Flags
    source: Ints
    target: Ints
    size: Floats
    half: Flags


@dataclass(frozen=True)
class _Actions:
    """Of each action of a table: its operations, and what they need."""

    operations: Ints
    kinds: Ints
    peers: Ints
    tags: Ints
    sizes: Floats
    blocking: Flags
    wait: Flags
    waitall: Flags


def _read(table: ActionTable) -> _Actions:
    """Three places for operations of each action."""
    many = len(table.shape)
    kinds, peers = np.zeros((many, 3), dtype=np.int64), np.zeros((many, 3), dtype=np.int64)
    tags, sizes = np.full((many, 3), UNTAGGED, dtype=np.int64), np.zeros((many, 3))
    blocking, wait, waitall = (np.zeros(many, dtype=bool) for _ in range(3))
    read = _Actions(np.ones(many, dtype=np.int64), kinds, peers, tags, sizes, blocking, wait, waitall)
    of_shape = np.array(table.shape, dtype=np.int64)
    for number, shape in enumerate(table.shapes):
        actions = np.flatnonzero(of_shape == number)
        if actions.size:
            _read_alike(read, shape, actions, [table.numbers[each] for each in actions.tolist()])
    return read


def _read_alike(read: _Actions, shape: Shape, actions: Ints, numbers: list[tuple[float, ...]]) -> None:
    """Fill in the actions of one shape, from the numbers of each."""
    name = shape.name.lower()
    if name in SENDS or name in RECEIVES:
        columns = np.array(numbers, dtype=np.float64).T
        if shape.nulls or len(columns) < 3:
            return
        there = columns[0] >= 0
        actions, columns = actions[there], columns[:, there]
        read.kinds[actions, 0] = Operation.send if name in SENDS else Operation.receive
        read.peers[actions, 0], read.tags[actions, 0] = columns[:2].astype(np.int64)
        read.sizes[actions, 0] = _bytes_of(columns[2], columns[3] if len(columns) > 3 else None)
        if SENDS[name] if name in SENDS else RECEIVES[name]:
            read.operations[actions], read.kinds[actions, 1], read.blocking[actions] = 2, Operation.wait, True
    elif name == "sendrecv" and shape.numbers == 6:
        columns = np.array(numbers, dtype=np.float64).T
        place = np.zeros(actions.size, dtype=np.int64)
        for kind, count, peer, of in ((Operation.send, 0, 1, 4), (Operation.receive, 2, 3, 5)):
            there = columns[peer] >= 0
            at = actions[there], place[there]
            read.kinds[at], read.peers[at] = kind, columns[peer, there].astype(np.int64)
            read.sizes[at] = _bytes_of(columns[count, there], columns[of, there])
            place += there
        some = place > 0
        actions, place = actions[some], place[some]
        read.operations[actions], read.kinds[actions, place], read.blocking[actions] = place + 1, Operation.wait, True
    elif name == "wait" and shape.numbers == 3:
        # Both ranks together say of which message.
        read.kinds[actions, 0], read.wait[actions] = Operation.wait, True
        ranks_and_tag = np.array(numbers, dtype=np.float64).astype(np.int64).T
        read.peers[actions, 0], read.peers[actions, 1], read.tags[actions, 0] = ranks_and_tag
    elif name in ("waitall", "waitany"):
        read.kinds[actions, 0], read.waitall[actions] = Operation.wait, name == "waitall"
    elif of_all(shape):
        read.kinds[actions, 0] = Operation.collective


def of_all(shape: Shape) -> bool:
    """Whether an action is an operation of all processes.

    >>> of_all(Shape("barrier", 0)), of_all(Shape("barrier_on", 1)), of_all(Shape("send", 4))
    (True, False, False)
    """
    name = shape.name.lower()
    return name not in NO_OPERATIONS and not name.endswith(AMONG_SOME)


def _bytes_of(count: Floats, of: Floats | None) -> Floats:
    """The bytes of so many values of types that SimGrid numbers, each a byte where no type is stated."""
    if of is None:
        return np.maximum(count, 0.0)
    known, which = np.unique(of.astype(np.int64), return_inverse=True)
    each = np.array([TYPE_BYTES.get(one, 1) for one in known.tolist()], dtype=np.float64)
    return np.asarray(np.maximum(count, 0.0) * each[which])


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
    InputError : when messages are sent that nobody receives, or the other way round, unless there may be halves, or a
        wait is for no request.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> found = exchanges(trace_of({0: [("send", (1, 0, 10, 0))], 1: [("recv", (0, 0, 10, 0))]}))
    >>> [Operation(each).name for each in found.kind], found.size.tolist()
    (['send', 'wait', 'receive', 'wait'], [80.0])
    """
    read = _read(trace.table)
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
    known, tags = np.unique(read.tags, return_inverse=True)
    tags = tags.reshape(read.tags.shape)
    tag = tags[posted]
    source, target = np.where(sending, mine, peer), np.where(sending, peer, mine)
    message = _matched(source, target, tag, sending, known.size, count, halves)

    request, end = number.copy(), np.zeros(event.size, dtype=np.int64)
    own = np.flatnonzero((kind == Operation.wait) & read.blocking[action])
    request[own], end[own] = before[own] - place[own], before[own]
    # Non-blocking requests are waited for one by one, or all that were posted since the last time.
    loose = ~read.blocking[posted[0]]
    everything = np.flatnonzero(read.waitall[action]) if read.waitall.any() else posts[:0]
    waits = np.flatnonzero(read.wait[action]) if read.wait.any() else posts[:0]
    if waits.size:
        doing = action[waits]
        sender, receiver = read.peers[doing, 0], read.peers[doing, 1]
        asked = _key(process[waits], sender, receiver, tags[doing, 0], count, known.size)
        given = _key(mine[loose], source[loose], target[loose], tag[loose], count, known.size)
        if everything.size:
            epoch = np.cumsum(read.waitall[action])
            span = int(epoch[-1]) + 1
            asked, given = asked * span + epoch[waits], given * span + epoch[posts[loose]]
        which, got = _paired(asked, given)
        # What was waited for before, or came from nobody, is done.
        request[waits], end[waits] = 0, 0
        request[waits[which]] = np.flatnonzero(loose)[got]
        end[waits[which]] = request[waits[which]] + 1
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


def _paired(asked: Ints, given: Ints) -> tuple[Ints, Ints]:
    """The k-th of a key among those asked for with the k-th among those given: the places of both, where there are."""
    order, ordered, _ = _ordinals(given)
    at = np.searchsorted(ordered, asked, side="left") + _ordinals(asked)[2]
    which = np.flatnonzero(at < ordered.size)
    which = which[ordered[at[which]] == asked[which]]
    return which, order[at[which]]


def _key(process: Ints, source: Ints, target: Ints, tag: Ints, count: int, tags: int) -> Ints:
    # One of the two ranks is the process itself.
    other, sends = np.where(source == process, target, source), source == process
    return np.asarray(((process * (count + 1) + other) * 2 + sends) * (tags + 1) + tag)


def _matched(source: Ints, target: Ints, tag: Ints, sending: Flags, tags: int, count: int, halves: bool) -> Ints:
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
