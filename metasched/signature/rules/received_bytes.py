"""Bytes of received messages that follow no rule: as many as their senders send.

Where bytes are modelled by statistics, each end of a message has a mean of its own, and a receive that is shorter than
what was sent ends a replay (MPI_ERR_TRUNCATE). Senders keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from metasched.arrays import Ints
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application, Rule
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.rules.members import members_of
from metasched.signature.rules.number_rules import regression
from metasched.signature.rules.roles import Cell
from metasched.signature.rules.samples import Samples
from metasched.signature.traces.actions import TYPE_BYTES, Shape
from metasched.signature.traces.exchanges import RECEIVES, SENDS, Operation, exchanges
from metasched.signature.traces.trace import Trace

#: Where actions that receive have the number of what they receive; its type stands at their end.
RECEIVED = 2
#: Loops around an action that its rule may ask for.
MOST_LOOPS = 10
#: Numbers an action of a shape and its numbers.
Numbered = Callable[[Shape, tuple[float, ...]], int]


def without_rule(shape: Shape, rule: Rule) -> bool:
    """Whether an action receives bytes that follow no rule."""
    return _receives(shape) and not rule.numbers[RECEIVED].ruled


def _receives(shape: Shape) -> bool:
    return shape.name.lower() in (*RECEIVES, "sendrecv") and shape.numbers > RECEIVED


def sends_without_rule(application: Application) -> bool:
    """Whether an action sends bytes that follow no rule."""
    return any(
        not rule.numbers[0 if name == "sendrecv" else RECEIVED].ruled
        for role in application.roles.values()
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True)
        if (name := application.shapes[leaf.shape].name.lower()) in SENDS or name == "sendrecv"
    )


def in_doubt(application: Application) -> bool:
    """Whether bytes that follow no rule may be received otherwise than they are sent, as far as the rules tell."""
    leaves = [
        (application.shapes[leaf.shape], rule)
        for role in application.roles.values()
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True)
    ]
    if not any(without_rule(*each) for each in leaves):
        return False
    ends: set[tuple[Attribute, ...]] = set()
    for shape, rule in leaves:
        name, numbers = shape.name.lower(), rule.numbers
        if name == "sendrecv":
            ends |= {(numbers[0], *numbers[4:5]), (numbers[RECEIVED], *numbers[5:])}
        elif name in SENDS or name in RECEIVES:
            ends.add(numbers[RECEIVED:])
    return len(ends) > 1


def by_rules(application: Application) -> list[tuple[Cell, int]]:
    """Which actions receive bytes by rules that no action sends any by: of what role, and its number."""
    ends: dict[bool, dict[tuple[Cell, int], set[Attribute]]] = {True: {}, False: {}}
    for cell, role in application.roles.items():
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            shape = application.shapes[leaf.shape]
            name = shape.name.lower()
            for receives in (True, False):
                if _receives(shape) if receives else name in SENDS or name == "sendrecv":
                    of = rule.numbers[0 if name == "sendrecv" and not receives else RECEIVED]
                    ends[receives][cell, leaf.number] = {part for part in of.parts() if not part.table}
    sent = set[Attribute]().union(*ends[False].values())
    return [action for action, rules in ends[True].items() if rules - sent and all(each.ruled for each in rules)]


def without(application: Application, actions: Collection[tuple[Cell, int]]) -> Application:
    """The application in which the bytes that some actions receive follow no rule.

    Those that are a part of what their partner has keep it.
    """
    members = members_of(application)

    def rule(cell: Cell, at: int, of: Rule) -> Rule:
        if (cell, at) not in actions:
            return of
        means: dict[int, float] = {}
        for n, own in members[cell].items():
            env = {"n": np.full(1, float(n)), "r": np.array(own, dtype=np.float64)}
            env |= {f"{name}{depth}": np.full(1, float(name == "c")) for name in "ic" for depth in range(MOST_LOOPS)}
            try:
                values = of.numbers[RECEIVED](with_grid(env, TOPOLOGIES[application.topology](n)), n)
            except KeyError:  # it asks for its partner
                return of
            means[n] = float(np.mean(values))
        law = regression(Samples(np.array([*means]), {}, 0, application.topology), np.array([*means.values()]))
        return replace(of, numbers=(*of.numbers[:RECEIVED], law, *of.numbers[RECEIVED + 1 :]))

    roles = {
        cell: replace(role, rules=tuple(rule(cell, at, of) for at, of in enumerate(role.rules)))
        for cell, role in application.roles.items()
    }
    return replace(application, roles=roles)


def as_sent(trace: Trace, loose: Ints, numbered: Numbered) -> Trace:
    """The trace in which some actions receive what is sent to them, the k-th of a sender with a tag what it sends k-th.

    Parameters
    ----------
    loose : the actions whose received bytes follow no rule, by number. Where nobody sends, they keep their bytes.
    numbered : of an action that may be new in the table.
    """
    table, count = trace.table, len(trace.processes)
    known = zip(table.shape, table.numbers, strict=True)
    is_end = np.array([_is_end(table.shapes[shape], numbers, count) for shape, numbers in known], dtype=np.bool_)
    at = [np.flatnonzero(is_end[each]) for each in trace.processes]
    ends = [process[places] for process, places in zip(trace.processes, at, strict=True)]
    found = exchanges(Trace(table, tuple(ends)), halves=True)
    posts = np.flatnonzero((found.kind == Operation.send) | (found.kind == Operation.receive))
    changed = ~found.sending & ~found.half[found.message] & np.isin(found.action[posts], loose)
    if not changed.any():
        return trace
    sizes = found.size[found.message[changed]]
    pairs, which = np.unique(np.stack([found.action[posts[changed]], sizes]), axis=1, return_inverse=True)
    new = [_receiving(table.shapes[table.shape[action]], table.numbers[action], size, numbered)
           for action, size in zip(pairs[0].astype(np.int64).tolist(), pairs[1].tolist(), strict=True)]  # fmt: skip
    whole = np.concatenate(ends)
    whole[found.event[posts[changed]]] = np.array(new, dtype=np.int32)[which.reshape(-1)]
    processes = [each.copy() for each in trace.processes]
    split = np.split(whole, np.cumsum([each.size for each in ends])[:-1])
    for process, places, actions in zip(processes, at, split, strict=True):
        process[places] = actions
    return Trace(table, tuple(processes))


def received_as_sent(trace: Trace, actions: Ints) -> bool:
    """Whether what some actions receive is what is sent to them, not a buffer for more, say.

    Parameters
    ----------
    actions : by number.
    """
    known = {key: action for action, key in enumerate(zip(trace.table.shape, trace.table.numbers, strict=True))}
    shapes = {shape: number for number, shape in enumerate(trace.table.shapes)}
    made = as_sent(trace, actions, lambda shape, numbers: known.get((shapes[shape], numbers), -1))
    return all(map(np.array_equal, made.processes, trace.processes))


def _is_end(shape: Shape, numbers: tuple[float, ...], count: int) -> bool:
    """Whether an action sends or receives a message, of processes that there are."""
    name = shape.name.lower()
    sends_or_receives = name in SENDS or name in RECEIVES or name == "sendrecv"
    return sends_or_receives and all(numbers[place] < count for place in shape.peers)


def _receiving(shape: Shape, numbers: tuple[float, ...], size: float, numbered: Numbered) -> int:
    """An action that receives so many bytes, by its number; as many values of its type as they need."""
    each = TYPE_BYTES.get(int(numbers[-1]), 1) if len(numbers) > RECEIVED + 1 else 1
    return numbered(shape, (*numbers[:RECEIVED], float(np.ceil(size / each)), *numbers[RECEIVED + 1 :]))
