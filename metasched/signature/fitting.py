"""Rules from traces of a few counts of processes: which roles there are, what each does, and how its numbers grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.actions import AMOUNTS, PEERS, Shape
from metasched.signature.along_sides import Seen, Sided, program_along_sides
from metasched.signature.application import Application, Role, Rule
from metasched.signature.attributes import (
    WRITTEN,
    Attribute,
    Samples,
    attribute,
    number,
    of_known_lengths,
    off_the_way,
    regression,
    shared_lengths,
    shared_out,
    shifted,
    turned_to,
)
from metasched.signature.expanding import expanded
from metasched.signature.expressions import LISTED as ALONG
from metasched.signature.expressions import Expression
from metasched.signature.folding import Loop, Node, folded
from metasched.signature.instruction_groups import (
    ALIKE,
    LEVELS,
    MOST_GROUPS,
    Placement,
    grouped,
    levels,
    placed,
    profiled,
)
from metasched.signature.matching import Places, Program, likened, matched, program_of
from metasched.signature.phases import Machine
from metasched.signature.roles import Cell, candidates, cells
from metasched.signature.topologies import TOPOLOGIES, different
from metasched.signature.traces import Trace
from metasched.signature.transforms import PowerLaw
from metasched.signature.workloads import one_workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: How many ways to see the roles are tried out, of those that the order of calls allows.
MOST_TRIED = 8
#: Grids whose sides numbers depend on where no peer shows one, and how many are tried.
USUAL, MOST_GRIDS = ("grid 01", "grid 10", "grid 012"), 3
USUAL_FIRST = ("grid", "equal sides")
#: Ranks, places, and numbers of a list that rules are looked for on, of each count and action.
RANKS, PLACES, LISTED = 12, 72, 12
#: Where the tag stands among the numbers of an action, and how many different ones tell places of a program apart.
TAGS = {name: 1 for name, places in PEERS.items() if places == (0,)} | {"wait": 2}
MOST_TAGS = 32
#: How far totals of instructions may be from their mean: counted ones, and those known from measured times.
STEADY, STEADY_TIMED = 0.005, 1.0 - ALIKE
#: Fewest different counts that a rule in n can be checked on.
FEWEST = 3


class _Run:
    """A trace with its shapes numbered as all traces number them."""

    def __init__(self, trace: Trace, shapes: dict[tuple[Shape, float], int], tagged: set[Shape]) -> None:
        self.trace, self.count = trace, len(trace.processes)
        table = trace.table
        keys = [
            (
                table.shapes[shape],
                numbers[TAGS[table.shapes[shape].name.lower()]] if table.shapes[shape] in tagged else 0.0,
            )
            for shape, numbers in zip(table.shape, table.numbers, strict=True)
        ]
        shape_of = np.array([shapes.setdefault(key, len(shapes)) for key in keys], dtype=np.int64)
        self.shape_of = shape_of
        self.seconds = Machine().seconds(trace)
        self.classes = np.zeros(self.count, dtype=np.int64)
        known: dict[bytes, int] = {}
        self.sequences: list[Ints] = []
        for rank, actions in enumerate(trace.processes):
            sequence = shape_of[actions]
            key = sequence.tobytes()
            if key not in known:
                known[key] = len(self.sequences)
                self.sequences.append(sequence)
            self.classes[rank] = known[key]
        self._columns: dict[tuple[int, int], Floats] = {}

    def column(self, shape: int, place: int) -> Floats:
        """One number of all actions of a shape, by the action's number in the table."""
        if (shape, place) not in self._columns:
            values = np.full(len(self.trace.table.shape), np.nan)
            chosen = np.flatnonzero(self.shape_of == shape)
            values[chosen] = [self.trace.table.numbers[action][place] for action in chosen.tolist()]
            self._columns[shape, place] = values
        return self._columns[shape, place]


@dataclass(frozen=True)
class Fit:
    """What was found.

    Parameters
    ----------
    application : the rules.
    ruled : share of all actions whose every number follows rules.
    unruled : by the name of the action, the share of all actions of which some number follows no rule.
    times : the same, as shares of the time.
    """

    application: Application
    ruled: float
    unruled: dict[str, float]
    times: dict[str, float]


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
    if len(counts) < len(traces):
        raise InputError("two signatures have the same number of processes, expected one of each")
    if len(counts) < FEWEST:
        listed = ", ".join(map(str, counts))
        raise InputError(
            f"there are signatures of {listed} processes, expected at least {FEWEST} different counts: each run by "
            "itself still tells its phases and weights (metasched signature extract)"
        )
    tagged = _tagged([by_count[count] for count in counts])
    # Where tags tell processes apart, not places of the program, there are no roles with them.
    for tags in (tagged, set()) if tagged else (tagged,):
        numbered: dict[tuple[Shape, float], int] = {}
        runs = [_Run(by_count[count], numbered, tags) for count in counts]
        shapes = [shape for shape, _ in numbered]
        _same_program(runs, shapes, timed)
        best = _best(runs, shapes, timed)
        if best is not None:
            return _checked(best, runs)
    raise InputError(
        "the processes have no roles that grids of these counts explain, or their programs differ: expected runs "
        "of one program with one workload"
    )


def _best(runs: Sequence[_Run], shapes: Sequence[Shape], timed: bool) -> Fit | None:
    """The rules of the roles that explain most; None where no roles do."""
    counts = [run.count for run in runs]
    topologies = different(counts)
    best: Fit | None = None
    tried = 0
    for features, topology in candidates(topologies):
        seen = _roles_seen(runs, features, topology)
        if seen is None:
            continue
        fitter = _Fitter(runs, shapes, features, topology, topologies, timed)
        found = fitter.fit(seen)
        if found is not None and (best is None or found.ruled > best.ruled):
            best = found
        tried += 1
        # Whose calls follow from the sides of a grid has no other roles by its borders.
        last = fitter.along or (best is not None and (best.ruled == 1.0 or not fitter.divided))
        if last or tried >= MOST_TRIED:
            break
    return best


def _checked(found: Fit, runs: Sequence[_Run]) -> Fit:
    """What was found, with the actions counted as without rule that it does not give back where it was learned."""
    wrong: dict[str, Floats] = {}
    for run in runs:
        try:
            made = expanded(found.application, run.count)
        except InputError:
            return Fit(found.application, 0.0, {"all": 1.0}, {"all": 1.0})
        for mine, theirs in zip(made.processes, run.trace.processes, strict=True):
            if mine.size != theirs.size:
                _add(wrong, "all", theirs.size, run.seconds[theirs].sum())
                continue
            pairs, times = np.unique(np.stack([mine, theirs]), axis=1, return_counts=True)
            for (one, other), many in zip(pairs.T.tolist(), times.tolist(), strict=True):
                shape = run.trace.table.shapes[run.trace.table.shape[other]]
                if not _given_back(made, one, run.trace, other, shape.name in AMOUNTS):
                    _add(wrong, shape.name, many, many * run.seconds[other])
    whole = _whole(runs)
    unruled = {
        name: np.maximum((found.unruled.get(name, 0.0), found.times.get(name, 0.0)), wrong.get(name, 0.0) / whole)
        for name in sorted({*found.unruled, *wrong})
    }
    left = max(1.0 - float(sum(each[0] for each in unruled.values())), 0.0)
    return Fit(found.application, left, *_shares(unruled))


def _given_back(made: Trace, one: int, true: Trace, other: int, amount: bool) -> bool:
    """Whether an action is the true one; of amounts, alike as in an instruction group."""
    if not amount:
        return made.table.text(one) == true.table.text(other)
    found, wanted = ((each.table.numbers[action] or (0.0,))[0] for each, action in ((made, one), (true, other)))
    return min(found, wanted) >= ALIKE * max(found, wanted)


def _add(to: dict[str, Floats], name: str, events: float, seconds: float) -> None:
    """Count actions that follow no rule, and their seconds."""
    to[name] = to.get(name, np.zeros(2)) + np.array([events, seconds], dtype=np.float64)


def _whole(runs: Sequence[_Run]) -> Floats:
    """Actions of all runs, and their seconds."""
    seconds = sum(float(run.seconds[actions].sum()) for run in runs for actions in run.trace.processes)
    return np.array([sum(run.trace.events for run in runs), seconds or 1.0])


def _shares(unruled: dict[str, Floats]) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of the actions and of the time, by the name of the action."""
    events, seconds = ({name: float(each[place]) for name, each in unruled.items()} for place in (0, 1))
    return events, seconds


def _tagged(traces: Sequence[Trace]) -> set[Shape]:
    """Shapes whose messages have the same few tags in every run: a tag then tells places of the program apart."""
    tags: dict[Shape, list[set[float]]] = {}
    for place, trace in enumerate(traces):
        table = trace.table
        for shape, numbers in zip(table.shape, table.numbers, strict=True):
            at = TAGS.get(table.shapes[shape].name.lower(), -1)
            if 0 <= at < len(numbers):
                tags.setdefault(table.shapes[shape], [set() for _ in traces])[place].add(numbers[at])
    return {shape for shape, of in tags.items() if all(each == of[0] for each in of) and len(of[0]) <= MOST_TAGS}


def _same_program(runs: Sequence[_Run], shapes: Sequence[Shape], timed: bool) -> None:
    """Refuse traces of different programs, some of whose actions others lack, or of different workloads."""
    names = [{shapes[shape].name for sequence in run.sequences for shape in np.unique(sequence)} for run in runs]
    for run, has in zip(runs[1:], names[1:], strict=True):
        if odd := sorted(has ^ names[0]):
            have, not_have = (run, runs[0]) if odd[0] in has else (runs[0], run)
            raise InputError(
                f"the run of {have.count} processes calls {odd[0]} and that of {not_have.count} never does, expected "
                "signatures of one program"
            )
    totals = {run.count: run.trace.instructions for run in runs}
    if not timed and not one_workload(totals):
        listed = ", ".join(f"{total:g} with {n}" for n, total in totals.items())
        raise InputError(
            f"the instructions of all processes together are {listed} processes, expected runs with one workload, "
            "whose total stays or drifts without a jump"
        )


def _roles_seen(runs: Sequence[_Run], features: str, topology: str) -> dict[Cell, dict[int, Ints]] | None:
    """The ranks of each cell at each count; None where processes of one cell make different calls."""
    found: dict[Cell, dict[int, list[int]]] = {}
    for place, run in enumerate(runs):
        classes: dict[Cell, int] = {}
        for rank, cell in enumerate(cells(features, topology, run.count)):
            if classes.setdefault(cell, int(run.classes[rank])) != run.classes[rank]:
                return None
            found.setdefault(cell, {}).setdefault(place, []).append(rank)
    return {cell: {place: np.array(ranks) for place, ranks in of.items()} for cell, of in found.items()}


def _spread(size: int, most: int) -> Ints:
    """Some of the numbers below ``size``: the first, the last, and some between."""
    if size <= most:
        return np.arange(size)
    third = most // 3
    middle = np.linspace(third, size - third - 1, most - 2 * third).astype(int)
    return np.unique(np.concatenate([np.arange(third), middle, np.arange(size - third, size)]))


def _goes_round(role: Role) -> bool:
    """Whether a loop runs a number of times that is divided by n: turns that come round are no loop of the program."""
    return any("1/" in atom for each in role.counts if each.expression for _, atom in each.expression.terms)


def _better(role: Role, unruled: float, than: Role, left: float) -> bool:
    """Whether more follows rules, or as much in fewer loops."""
    return (unruled, len(role.counts)) < (left, len(than.counts))


class _Fitter:
    """Finds the rules for one way to see the roles."""

    def __init__(
        self,
        runs: Sequence[_Run],
        shapes: Sequence[Shape],
        features: str,
        topology: str,
        topologies: Sequence[str],
        timed: bool,
    ) -> None:
        self.runs, self.shapes, self.features, self.topology = runs, shapes, features, topology
        self.timed = timed
        rest = [name for name in topologies if name not in ("line", topology)]
        # Grids of which a side is the same at all counts, or four-dimensional ones, come last.
        rest.sort(key=lambda name: not name.startswith(USUAL_FIRST) or name in ("grid 0123", "grid 3210"))
        self.topologies = ["line", *([topology] if topology != "line" else []), *rest]
        self.pool: dict[tuple[object, ...], list[Attribute]] = {}
        self.unruled: dict[str, Floats] = {}
        self.grids: list[str] = []
        self.divided, self.along = False, False
        self.single: dict[tuple[object, ...], list[Attribute]] = {}
        self.turned: dict[tuple[object, ...], list[Attribute]] = {}
        self.without: set[tuple[object, ...]] = set()

    def fit(self, seen: dict[Cell, dict[int, Ints]]) -> Fit | None:
        roles = {}
        # Roles that every run shows come first: what they teach holds for those that few runs show.
        for cell in sorted(seen, key=lambda each: (-len(seen[each]), each)):
            role = self._role(cell, seen[cell])
            if role is None:
                return None
            roles[cell] = role
        whole = _whole(self.runs)
        unruled = {name: each / whole for name, each in sorted(self.unruled.items())}
        learned = tuple(run.count for run in self.runs)
        roles = {cell: _of_lengths(role, self.topology, self.shapes, roles, learned) for cell, role in roles.items()}
        application = Application(self.features, self.topology, tuple(self.shapes), roles, learned)
        return Fit(application, 1.0 - float(sum(each[0] for each in unruled.values())), *_shares(unruled))

    def _role(self, cell: Cell, seen: dict[int, Ints]) -> Role | None:
        """The role by loops whose actions are the same at every turn; else, by what looks alike."""
        sequences = [self.runs[place].sequences[self.runs[place].classes[ranks[0]]] for place, ranks in seen.items()]
        # What the lengths of sides explain to the last call is no loop whose turns differ from count to count, unless
        # that loop holds every call that there is but once, as over the bits of a rank.
        longer = len({sequence.size for sequence in sequences}) > 1
        if longer and not _calls_once(max(sequences, key=len)) and (role := self._along_sides(cell, seen)) is not None:
            return role
        best: tuple[float, Role, dict[str, Floats]] | None = None
        for precisely in (True, False):
            before, self.unruled = self.unruled, {}
            role = self._role_by(cell, seen, precisely)
            unruled, self.unruled = self.unruled, before
            left = float(sum(each[0] for each in unruled.values()))
            if role is not None and (best is None or _better(role, left, best[1], best[0])):
                best = left, role, unruled
            if best is not None and not (best[0] and self.divided) and not _goes_round(best[1]):
                break
        if best is None:
            return None
        for name, (events, seconds) in best[2].items():
            _add(self.unruled, name, events, seconds)
        return best[1]

    def _role_by(self, cell: Cell, seen: dict[int, Ints], precisely: bool) -> Role | None:
        sequences = {
            place: self.runs[place].sequences[self.runs[place].classes[ranks[0]]] for place, ranks in seen.items()
        }
        trees = {
            place: self._by_turns(place, seen[place], sequence) if precisely else folded(sequence)
            for place, sequence in sequences.items()
        }
        for template in sorted(seen, reverse=True):
            program = program_of(trees[template])
            found = {
                place: likened(program, trees[place]) or matched(program, sequences[place].tolist()) for place in seen
            }
            places = {place: each for place, each in found.items() if each is not None}
            if len(places) == len(found):
                break
        else:
            return None
        counts = [self._count(program, number_, places, seen) for number_ in range(len(program.repeats))]
        if any(each is None for each in counts):
            return None
        rules = [self._rule(program, leaf, places, seen) for leaf in range(len(program.leaves))]
        return Role(cell, program, tuple(rules), tuple(each for each in counts if each is not None))

    def _along_sides(self, cell: Cell, seen: dict[int, Ints]) -> Role | None:
        """The role by what is done along each side of a grid, where that depends on the side's length."""
        amounts = np.array([shape.name in AMOUNTS for shape in self.shapes])
        partnered = np.array([bool(shape.peers) for shape in self.shapes])
        best: tuple[str, Sided] | None = None
        for topology in self.topologies:
            sides = {place: TOPOLOGIES[topology](self.runs[place].count) for place in seen}
            if len(sides[min(sides)]) < 2:
                continue
            runs = []
            for place, ranks in seen.items():
                run, some = self.runs[place], ranks[_spread(ranks.size, RANKS)]
                sequence = run.sequences[run.classes[ranks[0]]]
                runs.append(Seen(run.trace, some, sequence, amounts, partnered, sides[place]))
            sided = program_along_sides(runs)
            if sided is not None and (best is None or sided.astray < best[1].astray):
                best = topology, sided
        if best is None:
            return None
        topology, sided = best
        sides = {place: TOPOLOGIES[topology](self.runs[place].count) for place in seen}
        if (rules := self._rules_along(sided, topology, sides, seen)) is None:
            return None
        counts = [
            Attribute(topology, expression=Expression(0.0, ((1.0, f"{guard}(P{side})"),)))
            for side, guard in (sided.guards.get(each.number, (0, "")) for each in sided.program.repeats)
        ]
        for number_, count in sided.counts.items():
            counts[number_] = Attribute(expression=Expression(float(count)))
        self.along = True
        return Role(cell, sided.program, rules, tuple(counts))

    def _rules_along(
        self, sided: Sided, topology: str, sides: dict[int, tuple[int, ...]], seen: dict[int, Ints]
    ) -> tuple[Rule, ...] | None:
        """The rules of all actions; those of sides that are longer than in any run as of the side that shows them."""
        program, places = sided.program, {place: sided.places(of) for place, of in sides.items()}
        dimensions = len(sides[min(sides)])
        self.grids.append(topology)
        where = {
            leaf.number: {place: each for place, each in places.items() if each.leaves[leaf.number]}
            for leaf in program.leaves
        }
        rules: dict[int, Rule] = {}
        shown: dict[tuple[int, str, int], dict[int, int]] = {}

        def shows(number_: int) -> tuple[int, int, int]:
            """What more runs show comes first, and where more of the other sides differ."""
            own = sided.along[number_].side if number_ in sided.along else -1
            others = ({sides[place][side] for place in where[number_]} for side in range(dimensions) if side != own)
            return -len(where[number_]), -sum(len(each) > 1 for each in others), number_

        for number_ in sorted(where, key=shows):
            shape = program.leaves[number_].shape
            along = sided.along.get(number_)
            partners = {}
            if along is not None:
                partners = {
                    place: shifted(topology, dimensions, along.side, by)
                    for place, by in zip(self.shapes[shape].peers, along.shifts, strict=False)
                }
            if where[number_]:
                rules[number_] = self._rule(program, number_, where[number_], seen, partners)
                if along is not None:
                    shown.setdefault(along.part, {})[shape] = number_
                    self._turned(shape, rules[number_], topology, along.side, dimensions)
                continue
            side, part = sided.borrowed.get(along.part, (0, None)) if along is not None else (0, None)
            known = shown.get(part, {}).get(shape) if part is not None else None
            if along is None or known is None:
                return None
            numbers = tuple(
                partners.get(place) or turned_to(each, topology, side, along.side)
                for place, each in enumerate(rules[known].numbers)
            )
            rules[number_] = replace(rules[known], numbers=numbers)
        return tuple(rules[number_] for number_ in range(len(program.leaves)))

    def _turned(self, shape: int, rule: Rule, topology: str, side: int, dimensions: int) -> None:
        """Keep the rules of a message along one side for those along others."""
        for column, each in enumerate(rule.numbers):
            if column in self.shapes[shape].peers or not each.ruled:
                continue
            for kept in (self.single, self.turned):
                known = kept.setdefault((shape, column), [])
                for other in range(dimensions):
                    turned = turned_to(each, topology, side, other)
                    known += [turned] if turned not in known and not turned.table else []

    def _by_turns(self, place: int, ranks: Ints, sequence: Ints) -> tuple[Node, ...]:
        """Fold what is the same in all processes of a role at every turn, and then what looks alike."""
        run = self.runs[place]
        amounts = np.array([shape.name in AMOUNTS for shape in self.shapes])
        keys = np.zeros(sequence.size, dtype=np.uint64)
        for rank in ranks.tolist():
            # Columns of actions, distinguished by a number that mixes them.
            keys = (keys * np.uint64(6364136223846793005)) ^ (
                run.trace.processes[rank].astype(np.uint64) + np.uint64(1)
            )
        # Amounts may differ from turn to turn; no number of actions is as large as these.
        keys[amounts[sequence]] = sequence[amounts[sequence]].astype(np.uint64) + np.uint64(2**63)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        shape_of = sequence[first]
        known: dict[Loop, int] = {}

        def alike(nodes: Sequence[Node]) -> tuple[Node, ...]:
            symbols = []
            for node in nodes:
                if isinstance(node, Loop):
                    symbols.append(known.setdefault(Loop(node.count, alike(node.body)), len(self.shapes) + len(known)))
                else:
                    symbols.append(int(shape_of[node]))
            loops = {number_: loop for loop, number_ in known.items()}

            def spelled(inside: Sequence[Node]) -> tuple[Node, ...]:
                return tuple(
                    Loop(each.count, spelled(each.body)) if isinstance(each, Loop) else loops.get(each, each)
                    for each in inside
                )

            return spelled(folded(symbols))

        return alike(folded(which.reshape(-1)))

    def _count(
        self, program: Program, repeat: int, places: dict[int, Places], seen: dict[int, Ints]
    ) -> Attribute | None:
        columns: list[Floats] = []
        of: list[int] = []
        depth = len(program.repeats[repeat].loops)
        for place, each in places.items():
            table = np.array(each.repeats[repeat], dtype=np.float64).reshape(-1, depth + 1)
            table = table[_spread(len(table), 4 * PLACES)]
            outer = _counts_around(program, program.repeats[repeat].loops, each, table[:, :-1])
            ranks = np.full((len(table), 1), float(seen[place][0]))
            columns.append(np.concatenate([ranks, table[:, :-1], outer, table[:, -1:]], axis=1))
            of += [self.runs[place].count] * len(table)
        table = np.concatenate(columns)
        samples = self._samples(np.array(of), table, depth)
        body = tuple(leaf.shape for leaf in program.leaves if repeat in leaf.loops)
        return self._pooled(
            ("count", body),
            samples,
            table[:, -1],
            lambda: number(samples, table[:, -1], USUAL[:2] if USUAL[1] in self.topologies else USUAL[:1]),
        )

    def _samples(self, of: Ints, table: Floats, depth: int, listed: bool = False) -> Samples:
        env = {"r": table[:, 0]}
        env |= {f"i{each}": table[:, 1 + each] for each in range(depth)}
        env |= {f"c{each}": table[:, 1 + depth + each] for each in range(depth)}
        if listed:
            env |= {"j": table[:, 1 + 2 * depth], "m": table[:, 2 + 2 * depth]}
        return Samples(of, env, depth, self.topology)

    def _pooled(
        self, key: tuple[object, ...], samples: Samples, values: Floats, search: object, tolerance: float = 0.0
    ) -> Attribute | None:
        """A rule that another role has, where it holds here too; else one of its own, kept where it is well founded."""
        known = self.pool.setdefault(key, [])
        for each in sorted(known, key=lambda rule: rule.size):
            if samples.holds(each, values, tolerance):
                return each
        found: Attribute | None = search()  # type: ignore[operator]
        if found is not None and len(samples.distinct) == len(self.runs):
            known.append(found)
        return found

    def _rule(
        self,
        program: Program,
        leaf: int,
        places: dict[int, Places],
        seen: dict[int, Ints],
        partners: Mapping[int, Attribute] | None = None,
    ) -> Rule:
        """The rules of one action's numbers, those of partners as far as they are not known."""
        shape_number, loops = program.leaves[leaf].shape, program.leaves[leaf].loops
        shape, depth = self.shapes[shape_number], len(loops)
        columns: list[Floats] = []
        of: list[int] = []
        actions: list[tuple[int, Ints]] = []
        events, seconds = 0, 0.0
        for place, each in places.items():
            run = self.runs[place]
            at, taken = each.leaf(leaf)
            if not at.size:
                continue
            events += at.size * seen[place].size
            seconds += sum(float(run.seconds[run.trace.processes[rank][at]].sum()) for rank in seen[place].tolist())
            some, ranks = _spread(at.size, PLACES), seen[place][_spread(seen[place].size, RANKS)]
            steps = taken[some].astype(np.float64)
            outer = _counts_around(program, loops, each, steps)
            here = np.concatenate([steps, outer], axis=1)
            columns.append(
                np.concatenate([np.repeat(ranks, some.size)[:, None], np.tile(here, (ranks.size, 1))], axis=1)
            )
            numbers = np.concatenate([run.trace.processes[rank][at[some]] for rank in ranks.tolist()])
            actions.append((place, numbers))
            of += [run.count] * numbers.size
        samples = self._samples(np.array(of), np.concatenate(columns), depth)
        tolerance = WRITTEN if shape.name in AMOUNTS else 0.0
        sound = True
        by_column: dict[int, Attribute] = {}
        # Partners first: their grid and direction say whose sides the amount of a message is shared along.
        for column in sorted(range(shape.numbers), key=lambda each: each not in shape.peers):
            values = np.concatenate([self.runs[place].column(shape_number, column)[each] for place, each in actions])
            if partners and column in partners:
                by_column[column] = partners[column]
                continue
            peer = column in shape.peers
            one, ruled = self._number(samples, values, (shape_number, column), peer, tolerance, bool(partners))
            if partners and len(samples.distinct) < len(self.runs) and not _plain_share(one):
                one, ruled = regression(samples, values), False
            partner = by_column[shape.peers[0]] if shape.peers and column not in shape.peers else None
            if tolerance and one.law is not None:
                one, ruled = self._groups(samples, values, (shape_number, column), leaf, places, seen)
            by_column[column] = off_the_way(one, partner, samples)
            sound = sound and ruled
        found = [by_column[column] for column in range(shape.numbers)]
        if shape.lists:
            lists, length, ruled = self._lists(shape_number, samples, actions, np.array(of))
            sound = sound and ruled
            rule = Rule(tuple(found), lists, length)
        else:
            rule = Rule(tuple(found))
        if not sound:
            _add(self.unruled, shape.name, events, seconds)
        return rule

    def _groups(
        self, samples: Samples, values: Floats, column: tuple[int, int], leaf: int, places: dict[int, Places],
        seen: dict[int, Ints],
    ) -> tuple[Attribute, bool]:  # fmt: skip
        """The instructions of a computation that follows no rule, by groups of processes; whether there are such."""
        steady = STEADY_TIMED if self.timed else STEADY
        amounts = {}
        for place, each in places.items():
            run = self.runs[place]
            at = each.leaf(leaf)[0]
            at = at[_spread(at.size, PLACES)]
            amounts[run.count] = np.array(
                [float(run.column(*column)[run.trace.processes[rank][at]].mean()) for rank in seen[place].tolist()]
            )
        # What is measured is alike if it is so to the middle of its group.
        alike = ALIKE**2 if self.timed else ALIKE
        groups = {n: grouped(each, alike) for n, each in amounts.items()}
        many = {int(each.max()) + 1 for each in groups.values()}

        def law(group: int, steady: float) -> Attribute:
            """What a process of a group has, or any process of the role (-1)."""
            chosen = {n: amounts[n][(groups[n] == group) | (group < 0)] for n in amounts}
            of = np.concatenate([np.full(each.size, n) for n, each in chosen.items()])
            first = [int(np.flatnonzero(samples.counts == n)[0]) for n in of.tolist()]
            rows = Samples(of, {name: each[first] for name, each in samples.env.items()}, samples.loops, self.topology)
            return shared_out(rows, np.concatenate([*chosen.values()]), steady)

        if many == {1}:
            return law(-1, steady), True
        ranks = {self.runs[place].count: each for place, each in seen.items()}
        where = placed(groups, ranks, self.topologies) if len(many) == 1 and max(many) <= MOST_GROUPS else None
        if where is not None:
            table = tuple(law(group, steady) for group in range(max(many)))
            return Attribute(where.topology, table=table, placement=where), True
        self.divided = self.divided or (not self.timed and max(many) <= MOST_GROUPS)
        if (profile := profiled(amounts, ranks, self.topologies, alike)) is not None:
            where, factors, mean = *profile, law(-1, steady)
        else:
            where, factors, mean = (
                Placement("spread", groups=(*range(LEVELS),)),
                levels([*amounts.values()]),
                law(-1, STEADY_TIMED),
            )
        table = tuple(_times(mean, factor) for factor in factors.tolist())
        return Attribute(where.topology, table=table, placement=where), profile is not None

    def _number(
        self,
        samples: Samples,
        values: Floats,
        key: tuple[object, ...],
        peer: bool,
        tolerance: float,
        along: bool = False,
    ) -> tuple[Attribute, bool]:
        few = len(samples.distinct) < len(self.runs)
        if not few and np.all(values == values[0]) and not peer:
            return number(samples, values) or regression(samples, values), True
        if self.timed and tolerance:
            return regression(samples, values), True

        def search() -> Attribute | None:
            grids = dict.fromkeys([*self.grids, *(name for name in USUAL if name in self.topologies)])
            # Along sides, what another side shows is believed before what a side's own few lengths would tell.
            tried = self.single.get(key, ()) if few else self.turned.get(key, ()) if along else ()
            simple = sorted(tried, key=lambda rule: (rule.size, str(rule)))
            chosen = [*grids][:MOST_GRIDS]
            # Where there is no rule the search is longest, and many actions of a program have the same numbers.
            question = (samples.fingerprint(values), peer, tolerance, tuple(chosen), tuple(simple))
            if question in self.without:
                return None
            found = attribute(samples, values, self.topologies, peer, tolerance, chosen, simple)
            if found is None:
                self.without.add(question)
            return found

        found = self._pooled(key, samples, values, search, tolerance)
        if found is None:
            # What differs at one count may still follow from other roles; what does not, from none, and neither does
            # what follows no rule in one process of each run.
            varied = any(np.ptp(values[samples.counts == n]) for n in samples.distinct)
            if varied and not tolerance and not self.divided:
                alone = samples.alone()
                self.divided = peer or number(samples.part(alone), values[alone], USUAL[:1]) is not None
            return regression(samples, values), False
        if not few:
            single = self.single.setdefault(key, [])
            single += [each for each in found.table or (found,) if not each.table and each not in single]
        self.grids += [each.topology for each in (found, *found.table) if each.axes and each.topology != "line"]
        return found, found.ruled

    def _lists(
        self, shape: int, samples: Samples, actions: list[tuple[int, Ints]], of: Ints
    ) -> tuple[tuple[Attribute, ...], Attribute, bool]:
        """The rules of the lists of an action, and of their length."""
        lists = [
            self.runs[place].trace.table.lists[action] for place, numbers in actions for action in numbers.tolist()
        ]
        lengths = np.array([float(each[0].size) for each in lists])
        length, sound = self._number(samples, lengths, (shape, "length"), False, 0.0)
        picked = [_spread(int(size), LISTED) for size in lengths]
        rows = np.repeat(np.arange(len(lists)), [each.size for each in picked])
        env = {name: values[rows] for name, values in samples.env.items() if name != "n"}
        env |= {"j": np.concatenate(picked).astype(np.float64), "m": lengths[rows]}
        env |= {f"P{ALONG}": env["m"], f"x{ALONG}": env["j"]}
        inner = Samples(of[rows], env, samples.loops, self.topology)
        found = []
        for which in range(len(lists[0])):
            values = np.concatenate([each[which][chosen] for each, chosen in zip(lists, picked, strict=True)])
            one, ruled = self._number(inner, values, (shape, "list", which), False, 0.0)
            found.append(one)
            sound = sound and ruled
        return tuple(found), length, sound


def _of_lengths(
    role: Role, topology: str, shapes: Sequence[Shape], roles: Mapping[Cell, Role], counts: Sequence[int]
) -> Role:
    """The role, with the lengths that rules of any role share out seen in all of its messages."""
    lengths = shared_lengths(each for one in roles.values() for rule in one.rules for each in rule.numbers)
    if not lengths:
        return role
    rules = []
    for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
        shape = shapes[leaf.shape]
        numbers = tuple(
            each if place in shape.peers or shape.name in AMOUNTS else of_known_lengths(each, lengths, counts, topology)
            for place, each in enumerate(rule.numbers)
        )
        rules.append(replace(rule, numbers=numbers))
    return replace(role, rules=tuple(rules))


def _plain_share(rule: Attribute) -> bool:
    """Whether a rule is a number, or one share: all that fewer counts than were run can tell of a message."""
    known = rule.expression
    return known is not None and len(known.terms) <= 1 and not (known.terms and known.constant)


def _times(rule: Attribute, factor: float) -> Attribute:
    """A law or an expression of one term, multiplied."""
    if rule.law is not None:
        return Attribute(law=PowerLaw(factor * rule.law.factor, rule.law.exponent, rule.law.r_squared))
    known = rule.expression or Expression()
    terms = tuple((factor * slope, atom) for slope, atom in known.terms)
    return Attribute(expression=Expression(factor * known.constant, terms))


def _counts_around(program: Program, loops: tuple[int, ...], places: Places, steps: Floats) -> Floats:
    """How often the loops around an action ran, one column a loop, for each row of steps."""
    columns = []
    for depth, loop in enumerate(loops):
        table = np.array(places.repeats[loop], dtype=np.float64).reshape(-1, depth + 1)
        if np.all(table[:, -1] == table[0, -1]):
            columns.append(np.full(len(steps), table[0, -1]))
            continue
        known = {tuple(row[:-1]): row[-1] for row in table.tolist()}
        columns.append(np.array([known[tuple(row[:depth])] for row in steps.tolist()]))
    return np.stack(columns, axis=1) if columns else np.zeros((len(steps), 0))


def _calls_once(sequence: Ints) -> bool:
    """Whether each shape of a sequence stands at one place of its program, in whatever loops."""
    leaves = [leaf.shape for leaf in program_of(folded(sequence)).leaves]
    return len(set(leaves)) == len(leaves)
