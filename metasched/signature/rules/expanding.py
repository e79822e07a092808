"""Expansion of an application: the trace of a number of processes that was not run, by its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Flags, Floats, Ints
from metasched.records import InputError
from metasched.signature.equations.expressions import LISTED, atom_value
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application, Role, Rule
from metasched.signature.rules.attributes import with_grid
from metasched.signature.rules.parts_to_all import shared_out, shares
from metasched.signature.rules.presence import presence
from metasched.signature.rules.received_bytes import as_sent, in_doubt, without_rule
from metasched.signature.rules.roles import TREES, cells
from metasched.signature.traces.actions import AMOUNTS, TURN, ActionTable, Shape
from metasched.signature.traces.matching import MOST_LAID_OUT, Places, Repeat, laid_out
from metasched.signature.traces.parts import spliced, turns
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.turning import turned_by

#: Most processes, and most actions of all of them.
MOST_PROCESSES, MOST_EVENTS = 65_536, 200_000_000
#: Turns of a call that is repeated by itself, which are kept together: the neighbours of a cell in three dimensions.
NEIGHBOURS = 26


@dataclass
class _Actions:
    """Deduplicates actions: equal ones get the same number in the table."""

    table: ActionTable
    known: dict[Shape, dict[tuple[object, ...], int]] = field(default_factory=dict)
    first: dict[Shape, tuple[list[tuple[float, ...]], range]] = field(default_factory=dict)

    def given(self) -> Ints:
        """What :meth:`number` and :meth:`numbers` have answered so far, each number once."""
        known = (each.values() for each in self.known.values())
        return np.array([*chain(*known, *(added for _, added in self.first.values()))], dtype=np.int64)

    def number(self, shape: Shape, numbers: tuple[float, ...], lists: tuple[Floats, ...] = ()) -> int:
        known = self._known(shape)
        key = (*numbers, *(each.tobytes() for each in lists))
        if key not in known:
            single, several = iter(numbers), iter(lists)
            spelled: list[float] = []
            for letter in shape.pattern:
                if letter == "V":
                    spelled += next(several).tolist()
                else:
                    spelled.append(next(single))
            known[key] = self.table.add(shape.name, spelled, shape.tail)
        return known[key]

    def numbers(self, shape: Shape, columns: list[Floats]) -> Ints:
        """The numbers of actions without lists, which all differ, from the columns of what they hold."""
        rows = [*zip(*(each.tolist() for each in columns), strict=True)]
        if shape not in self.known and shape not in self.first:
            # Many shapes have one place in a program: there may be millions of rows, which nobody looks up.
            added = self.table.extend(shape.name, rows, shape.tail)
            self.first[shape] = rows, added
            return np.arange(added.start, added.stop)
        known = self._known(shape)
        new = [row for row in rows if row not in known]
        known.update(zip(new, self.table.extend(shape.name, new, shape.tail), strict=True))
        return np.fromiter(map(known.__getitem__, rows), dtype=np.int64, count=len(rows))

    def _known(self, shape: Shape) -> dict[tuple[object, ...], int]:
        if shape in self.first:
            self.known[shape] = dict(zip(*self.first.pop(shape), strict=True))
        return self.known.setdefault(shape, {})


@dataclass(frozen=True)
class Sample:
    """A sample of an expanded trace: some iterations of its loops.

    Parameters
    ----------
    trace : the actions of these turns.
    roles : of each rank, which of ``programs`` it runs.
    programs : of each role, the shapes of all its actions, and which of them are in the trace, both in order.
    """

    trace: Trace
    roles: tuple[int, ...]
    programs: tuple[tuple[Ints, Ints], ...]


def expanded(application: Application, count: int) -> Trace:
    """The trace of ``count`` processes.

    Raises
    ------
    InputError
        When no grid has that many processes, or a role is needed that no run has shown.
    """
    return sampled(application, count, 0).trace


def sound(application: Application, count: int) -> Trace:
    """The trace of ``count`` processes, whose messages all have both ends.

    Raises
    ------
    InputError
        As :func:`expanded` does, and when a message has one end only: the runs left a rule open, and the one that was
        taken does not hold here.
    """
    trace = expanded(application, count)
    try:
        return trace.checked()
    except InputError as error:
        learned = ", ".join(map(str, application.learned))
        raise InputError(
            f"the rules from {learned} processes do not hold for {count}: {error}; expected runs that leave none open"
        ) from None


def sampled(application: Application, count: int, longest: int, outer: int = 0) -> Sample:
    """The trace of ``count`` processes with at most ``longest`` turns of each loop, spread over all; 0 for all.

    Calls repeated by themselves are kept up to :data:`NEIGHBOURS`. Of outermost loops that hold others, ``outer`` turns
    are kept where it is above 0.

    Raises
    ------
    InputError
        As :func:`expanded` does.
    """
    if not 1 <= count <= MOST_PROCESSES:
        raise InputError(f"{count} processes are asked for, expected from 1 to {MOST_PROCESSES}")
    if application.parts:
        return _spliced(application, count)
    return _sampled(application, count, longest, outer, _Actions(ActionTable()))


def _spliced(application: Application, count: int) -> Sample:
    """The trace of a program in parts; turns of its loops may have little in common, so that none is left out."""
    actions = _Actions(ActionTable())
    outside = _sampled(application, count, 0, 0, actions).trace.processes
    (role,) = application.roles.values()
    places, _ = positions(application, role, 0, count)
    inside: list[dict[int, Sequence[NDArray[np.int32]]]] = [{} for _ in range(count)]
    for leaf, part in application.parts.items():
        marks = places.leaf(leaf)[0].tolist()
        if not marks:
            continue
        made = _sampled(part, count, 0, 0, actions).trace.processes
        turn = actions.number(Shape(TURN, 0), ())
        for rank, process in enumerate(made):
            each = turns(process, turn)
            # Where a part has fewer turns than marks by their rules, the last one stands in.
            each = [*each, *each[-1:] * max(len(marks) - len(each), 0)]
            inside[rank] |= {mark: [one] for mark, one in zip(marks, each, strict=False)}
            inside[rank] |= {mark: [] for mark in marks[len(each) :]}
    processes = tuple(spliced(*both) for both in zip(outside, inside, strict=True))
    if sum(each.size for each in processes) > MOST_EVENTS:
        raise InputError(f"{count} processes would have more than {MOST_EVENTS} actions")
    shapes = np.array(actions.table.shape, dtype=np.int64)
    known: dict[bytes, int] = {}
    programs: list[tuple[Ints, Ints]] = []
    roles = []
    for process in processes:
        program = shapes[process]
        number = known.setdefault(program.tobytes(), len(programs))
        if number == len(programs):
            programs.append((program, np.arange(program.size)))
        roles.append(number)
    return Sample(Trace(actions.table, processes), tuple(roles), tuple(programs))


def _sampled(application: Application, count: int, longest: int, outer: int, actions: _Actions) -> Sample:
    """The trace of an application without its parts."""
    members: dict[tuple[int, ...], list[int]] = {}
    for rank, cell in enumerate(cells(application.features, application.topology, count)):
        members.setdefault(cell, []).append(rank)
    for cell, ranks in members.items():
        if cell not in application.roles:
            raise InputError(
                f"process {ranks[0]} of {count} has a part that no run showed ({application.features} {cell} of "
                f"{application.topology}), expected signatures of runs that have such a process"
            )
    # Receives whose bytes follow no rule are kept apart: each gets what is sent to it, once all processes are known.
    loose = _Actions(actions.table) if in_doubt(application) else actions
    processes: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * count
    total = 0
    roles = [0] * count
    programs: list[tuple[Ints, Ints]] = []
    for cell, all_ranks in members.items():
        role, turns = application.roles[cell], (longest, outer or longest)
        for alike in _with_as_many_turns(application, role, np.array(all_ranks), count):
            for same, made, program in _role(application, role, alike, count, (actions, loose), turns):
                total += made.size
                if total > MOST_EVENTS:
                    raise InputError(f"{count} processes would have more than {MOST_EVENTS} actions")
                for row, rank in enumerate(same.tolist()):
                    processes[rank] = made[row]
                    roles[rank] = len(programs)
                programs.append(program)
    # Ranks of the rules count from their origin.
    first = application.first(count)
    turned = [(rank - first) % count for rank in range(count)]
    whole = Trace(actions.table, tuple(processes[each] for each in turned))
    if loose is not actions:
        whole = as_sent(whole, loose.given(), actions.number)
    return Sample(whole, tuple(roles[each] for each in turned), tuple(programs))


def _with_as_many_turns(application: Application, role: Role, ranks: Ints, count: int) -> list[Ints]:
    """The ranks of a role, those together whose loops run as often: in a tree, those that have as many children."""
    atoms = {
        atom
        for times in role.counts
        for part in times.parts()
        for expression in part.expressions
        for _, atom in expression.terms
        if atom.partition("(")[0] in TREES
    }
    env = {"n": np.full(1, float(count)), "r": ranks.astype(np.float64)}
    columns = [atom_value(atom, env) for atom in sorted(atoms)]
    if not columns:
        return [ranks]
    _, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return [ranks[which.reshape(-1) == each] for each in range(int(which.max()) + 1)]


def _role(
    application: Application,
    role: Role,
    ranks: Ints,
    count: int,
    actions: tuple[_Actions, _Actions],
    turns: tuple[int, int],
) -> Iterator[tuple[Ints, NDArray[np.int32], tuple[Ints, Ints]]]:
    """Actions of the processes of a role that make the same calls, role by role.

    Yields
    ------
    Their ranks, an array of shape (ranks, actions), and the program as samples have it.
    """
    sides, first = TOPOLOGIES[application.topology](count), application.first(count)
    places, length = positions(application, role, int(ranks[0]), count)
    shapes = np.zeros(length, dtype=np.int64)
    kept = np.zeros(length, dtype=bool)
    whole: dict[int, Ints] = {}
    tables: dict[int, Ints] = {}
    repeats = {each.number: each for each in role.program.repeats}
    for leaf in role.program.leaves:
        table = places.leaves[leaf.number]
        if not len(table):
            continue
        whole[leaf.number] = table
        shapes[table[:, 0]] = leaf.shape
        if turns[0]:
            table = table[_some(table, [_longest(repeats[loop], *turns) for loop in leaf.loops])]
        kept[table[:, 0]] = True
        tables[leaf.number] = table
    for same, there, requests in presence(application, role, ranks, count, shapes, whole, sides):
        left = kept & there
        at = np.cumsum(left) - 1
        made = np.zeros((same.size, int(left.sum())), dtype=np.int32)
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            if leaf.number not in tables:
                continue
            table = tables[leaf.number]
            table = table[there[table[:, 0]]]
            if not len(table):
                continue
            depth = (table.shape[1] - 1) // 2
            env = {"n": np.full((1, 1), float(count)), "r": same[:, None].astype(np.float64)}
            env["q"] = requests[None, table[:, 0]]
            for place in range(depth):
                env[f"i{place}"] = table[None, :, 1 + place].astype(np.float64)
                env[f"c{place}"] = table[None, :, 1 + depth + place].astype(np.float64)
            shape = application.shapes[leaf.shape]
            numbered = _numbered(shape, rule, with_grid(env, sides), count, actions[without_rule(shape, rule)], first)
            made[:, at[table[:, 0]]] = numbered
        yield same, made, (shapes[there], np.flatnonzero(kept[there]))


def positions(application: Application, role: Role, rank: int, count: int) -> tuple[Places, int]:
    """Where each action of a role's program stands in what one of its processes does, and how much that is.

    Raises
    ------
    InputError
        When it is more than a process may be given.
    """
    sides = TOPOLOGIES[application.topology](count)

    def count_of(repeat: Repeat, steps: Ints, counts: Ints) -> Ints:
        named = {"n": np.full(1, float(count)), "r": np.full(1, float(rank))}
        named |= {f"i{place}": step.astype(np.float64) for place, step in enumerate(steps.T)}
        named |= {f"c{place}": each.astype(np.float64) for place, each in enumerate(counts.T)}
        value = role.counts[repeat.number](with_grid(named, sides), count)
        return np.broadcast_to(np.clip(value, 0.0, MOST_LAID_OUT + 1), len(steps)).astype(np.int64)

    try:
        return laid_out(role.program, count_of)
    except ValueError as error:
        raise InputError(str(error)) from None


def _longest(repeat: Repeat, longest: int, outer: int) -> int:
    """The number of iterations of a loop that are kept."""
    if _alone(repeat):
        return max(longest, NEIGHBOURS)
    inner = any(isinstance(part, Repeat) and not _alone(part) for part in repeat.body)
    return outer if inner and not repeat.loops else longest


def _alone(repeat: Repeat) -> bool:
    return len(repeat.body) == 1 and not isinstance(repeat.body[0], Repeat)


def _some(table: Ints, most: list[int]) -> Flags:
    """Which rows of a leaf's table stand in turns that are kept: so many of each loop around it, evenly spread."""
    kept = np.ones(len(table), dtype=bool)
    for place, longest in enumerate(most):
        step, times = table[:, 1 + place], table[:, 1 + len(most) + place]
        before = np.maximum((step * longest + times - 1) // np.maximum(times, 1), 0)
        # Of longest buckets of equal width, the first step of each.
        kept &= (times <= longest) | (before * times // longest == step)
    return kept


def _numbered(shape: Shape, rule: Rule, env: dict[str, Floats], count: int, actions: _Actions, first: int) -> Ints:
    """The actions of one leaf by their numbers, of a shape that broadcasts to (ranks, places)."""
    rounded = shape.name not in AMOUNTS
    if shape.peers:
        env = env | {"p": np.asarray(rule.numbers[shape.peers[0]](env, count))}
    columns = turned_by(shape, [np.asarray(each(env, count, rounded)) for each in rule.numbers], first, count)
    if not rounded:
        columns = [_written(each) for each in columns]
    columns = [each.reshape(1, 1) if each.ndim < 2 and each.size == 1 else each for each in columns]
    together = np.broadcast_shapes((1, 1), *(each.shape for each in columns))
    if rule.length is not None:
        return _with_lists(shape, rule, env, count, actions, columns, first)
    if not columns:
        return np.full((1, 1), actions.number(shape, ()))
    different, which = _different(columns)
    return actions.numbers(shape, different)[np.broadcast_to(which, together)]


def _different(columns: list[Floats]) -> tuple[list[Floats], Ints]:
    """The different rows of columns that broadcast to one shape, in order, and which of them stands at each place.

    Examples
    --------
    >>> _different([np.array([[2.0], [1.0]]), np.array([[5.0, 5.0]])])[0]
    [array([1., 2.]), array([5., 5.])]
    """
    rows: list[Floats] = []
    which: Ints = np.zeros((1, 1), dtype=np.int64)
    # Column by column: most depend on the rank alone or on the place alone, so that what is sorted stays small.
    for column in columns:
        values, place = _values(column)
        if values.size == 1:
            rows.append(np.full(rows[0].size if rows else 1, values[0]))
            continue
        pairs, which = _values(which * values.size + place)
        before, last = np.divmod(pairs, values.size)
        rows = [*(each[before] for each in rows), values[last]]
    return rows, which


def _values(numbers: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The different numbers of an array, ascending, and which of them stands at each place, of the array's shape."""
    low, high = numbers.min(initial=0), numbers.max(initial=0)
    if high - low > 4 * numbers.size or (numbers.dtype.kind == "f" and np.any(numbers != np.floor(numbers))):
        values, place = np.unique(numbers, return_inverse=True)
        return values, place.reshape(numbers.shape)
    # Whole numbers close to each other need not be sorted.
    above = (numbers - low).astype(np.int64)
    there = np.zeros(int(high - low) + 1, dtype=bool)
    there[above] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[above]


def _written(values: Floats) -> Floats:
    """Amounts of computation rounded to the six digits of a trace."""
    different, which = np.unique(values, return_inverse=True)
    return np.array([float(f"{max(each, 0.0):g}") for each in different.tolist()])[which].reshape(values.shape)


def _with_lists(
    shape: Shape, rule: Rule, env: dict[str, Floats], count: int, actions: _Actions, columns: list[Floats], first: int
) -> Ints:
    if rule.length is None:
        raise TypeError("a rule of lists has their length")
    length = np.asarray(rule.length(env, count))
    length = length.reshape(1, 1) if length.size == 1 else length
    longest = int(length.max())
    if longest > MOST_PROCESSES:
        raise InputError(f"{shape.name} would have a list of {longest} numbers, expected at most {MOST_PROCESSES}")
    if longest and shares(shape, rule) and all(each.size == 1 for each in (length, *columns)):
        single = tuple(float(each.item()) for each in columns)
        others, favoured = (actions.number(shape, *shared_out(single, longest, more)) for more in (False, True))
        return np.where(np.mod(env["r"] + first, count) < single[0] % longest, favoured, others)
    named = {name: np.asarray(each)[..., None] for name, each in env.items()}
    named |= {"j": np.arange(longest, dtype=np.float64), "m": length[..., None]}
    named |= {f"P{LISTED}": named["m"], f"x{LISTED}": named["j"]}
    lists = [np.asarray(each(named, count)) for each in rule.lists]
    outer = [each.shape[:-1] for each in lists if each.ndim > 1]
    together = np.broadcast_shapes((1, 1), length.shape, *(each.shape for each in columns), *outer)
    found = np.zeros(together, dtype=np.int64)
    for at in np.ndindex(together):
        many = int(np.broadcast_to(length, together)[at])
        single = tuple(float(np.broadcast_to(each, together)[at]) for each in columns)
        parts = tuple(np.broadcast_to(each, (*together, longest))[at][:many].copy() for each in lists)
        found[at] = actions.number(shape, single, parts)
    return found


def lines(trace: Trace) -> Iterator[list[str]]:
    """The actions of each process as SimGrid writes them, without the rank."""
    texts = np.array([trace.table.text(action) for action in range(len(trace.table.shape))], dtype=object)
    for actions in trace.processes:
        yield texts[actions].tolist()
