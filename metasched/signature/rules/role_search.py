"""The search for the roles of processes: their programs, with the rules of all numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.along_sides import Calls, Seen, Sided, program_along_sides
from metasched.signature.rules.application import Application, Role, Rule
from metasched.signature.rules.attributes import Attribute, shifted, turned_to
from metasched.signature.rules.both_ends import BothEnds
from metasched.signature.rules.both_ways import told_apart
from metasched.signature.rules.faces import dealt_alike, dealt_lengths, of_known_lengths, shared_lengths
from metasched.signature.rules.fits import Fit, add, shares_by_name
from metasched.signature.rules.numbered_runs import spread, whole_of
from metasched.signature.rules.one_dealing import dealt_in_one_way
from metasched.signature.rules.roles import Cell
from metasched.signature.rules.rule_search import RANKS, GivenUpError, RuleSearch, UndecidedError
from metasched.signature.rules.steady_sides import across_steady_sides
from metasched.signature.traces.actions import AMOUNTS, Shape
from metasched.signature.traces.folding import Loop, Node, folded
from metasched.signature.traces.matching import (
    Leaf,
    Part,
    Places,
    Program,
    Repeat,
    likened,
    matched,
    merged,
    program_of,
)

#: A role, and by the name of the action how many follow no rule in it, and their seconds.
Found = tuple[Role, dict[str, Floats]]
#: Values that a rule of partners is seen on, at least, on average over those of a call.
VALUES = 3


def _goes_round(role: Role) -> bool:
    """Whether a loop runs a number of times that is divided by n: turns that come round are no loop of the program."""
    return any("1/" in atom for each in role.counts if each.expression for _, atom in each.expression.terms)


def _same_in_all(program: Program, places: Mapping[int, Places]) -> bool:
    """Whether loops of nothing but another loop run that one as often in every run, but themselves not.

    Then numbers that come round after as many turns as a side is long made two loops of one. What is left over of the
    last turn stands behind them, in a loop with the same calls.
    """
    for parts in (program.parts, *(each.body for each in program.repeats)):
        for at, outer in enumerate(parts):
            inner = outer.body[0] if isinstance(outer, Repeat) and len(outer.body) == 1 else None
            if not isinstance(outer, Repeat) or not isinstance(inner, Repeat):
                continue
            called = _calls(inner.body)
            rest = [
                each.number
                for each in parts[at + 1 : at + 2]
                if isinstance(each, Repeat) and _calls(each.body) == called
            ]
            depth = len(outer.loops)
            totals: dict[tuple[int, ...], int] = {}
            for place, each in places.items():
                for loop in (inner.number, *rest):
                    for row in each.repeats[loop].tolist():
                        around = place, *row[:depth]
                        totals[around] = totals.get(around, 0) + row[-1]
            counts = {count for each in places.values() for count in each.repeats[outer.number][:, -1].tolist()}
            if len({*totals.values()}) == 1 < len(counts):
                return True
    return False


def _calls(parts: Sequence[Part]) -> list[object]:
    """The shapes of parts of a program, loops as lists."""
    return [each.shape if isinstance(each, Leaf) else _calls(each.body) for each in parts]


def _cost(found: Found) -> tuple[float, int]:
    """How many actions follow no rule; of as many, how many loops there are."""
    role, unruled = found
    return float(sum(each[0] for each in unruled.values())), len(role.counts)


class RoleSearch:
    """The search for the programs of all roles, for one choice of roles.

    Parameters
    ----------
    search : for the rules of their numbers, with the runs.
    features : of ranks, that distinguish the roles.
    ends : of messages in larger runs, which both have to be there; None where they are not checked.
    """

    def __init__(self, search: RuleSearch, features: str, ends: BothEnds | None = None) -> None:
        self.search, self.features, self.ends = search, features, ends
        self.runs, self.shapes = search.runs, search.shapes
        #: Whether the calls of a role follow from the sides of a grid.
        self.along = False
        #: Of programs, where their actions stand in each run.
        self.placed: dict[int, dict[int, Places]] = {}

    def fit(self, seen: dict[Cell, dict[int, Ints]], least: float = -np.inf) -> Fit | None:
        """The rules of all roles; None where one has none.

        Parameters
        ----------
        seen : the ranks of each cell, by the place of the run.
        least : the share of actions, of calls where times are measured, of which more have to follow rules.
        """
        roles: dict[Cell, Role] = {}
        whole = whole_of([*dict.fromkeys(self.runs)])
        unruled: dict[str, Floats] = {}
        # Roles that every run shows come first: what they teach holds for those that few runs show.
        for cell in sorted(seen, key=lambda each: (-len(seen[each]), each)):
            found = self._role(cell, seen[cell])
            if found is None:
                return None
            roles[cell], own = found
            # Most roles that do not hold in larger runs show it before the last of them is known.
            if self.ends is not None and not self.ends.with_role(found[0]):
                return None
            for name, (events, seconds) in own.items():
                add(unruled, name, events, seconds)
            left = 1.0 - sum(
                each[0] / whole[0] for name, each in unruled.items() if not self.search.timed or name not in AMOUNTS
            )
            # What the other roles are matters no more, but for whether the search ends with these.
            if left <= least and self.search.divided and not self.along:
                return None
        if self._arbitrary(roles, seen):
            return None
        shares = {name: each / whole for name, each in sorted(unruled.items())}
        learned, topology = tuple(dict.fromkeys(run.count for run in self.runs)), self.search.topology
        # Along sides the calls of short ones go the ways of those along long ones already.
        for step in (across_steady_sides, dealt_in_one_way, *(() if self.along else (told_apart,))):
            made = step(Application(self.features, topology, tuple(self.shapes), roles, learned))
            if made is None:
                return None
            roles = made
        roles = {cell: _of_lengths(role, topology, self.shapes, roles, learned) for cell, role in roles.items()}
        application = Application(self.features, topology, tuple(self.shapes), roles, learned)
        return Fit(application, 1.0 - float(sum(each[0] for each in shares.values())), *shares_by_name(shares))

    def _arbitrary(self, roles: Mapping[Cell, Role], seen: Mapping[Cell, Mapping[int, Ints]]) -> bool:
        """Whether the partners of some call have nearly as many rules as values: then any others would have some."""
        rules: dict[tuple[int, int, int], set[Attribute]] = {}
        values: dict[tuple[int, int, int], int] = {}
        for cell, role in roles.items():
            processes = sum(ranks.size for ranks in seen[cell].values())
            before: dict[int, int] = {}
            for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
                place = before[leaf.shape] = before.get(leaf.shape, -1) + 1
                for column in self.shapes[leaf.shape].peers:
                    several = rule.numbers[column].table or (rule.numbers[column],)
                    call = leaf.shape, place, column
                    rules.setdefault(call, set()).update(several)
                    values[call] = values.get(call, 0) + processes * len(several)
        return any(len(several) - 1 > values[call] / VALUES for call, several in rules.items())

    def _role(self, cell: Cell, seen: dict[int, Ints]) -> Found | None:
        """The role by loops whose actions are the same at every turn; else, by what looks alike."""
        sequences = [*self._sequences(seen).values()]
        # What the lengths of sides explain to the last call is no loop whose turns differ from count to count, unless
        # that loop holds every call that there is but once, as over the bits of a rank.
        longer = len({sequence.size for sequence in sequences}) > 1
        if longer and not self.search.in_tree and not _calls_once(max(sequences, key=len)):
            grids = [*self.search.grids]
            along = self._strictly(self._along_sides, cell, seen)
            if along is not None and not self._plainer(along[0], cell, seen):
                return along
            self.along, self.search.grids = False, grids
        best: Found | None = None
        for precisely in (True, False):
            found = self._strictly(self._role_by, cell, seen, precisely)
            if found is not None and (best is None or _cost(found) < _cost(best)):
                best = found
            round_ = best is not None and _goes_round(best[0])
            if best is not None and not (_cost(best)[0] and self.search.divided) and not round_:
                break
            if round_ and self.search.calls_only:
                raise UndecidedError
        return best

    def _strictly(self, search: Callable[..., Found | None], *of: object) -> Found | None:
        """What a search finds; None where it is given up though another may explain every call."""
        try:
            return search(*of)
        except GivenUpError:
            if not self.search.strict:
                raise
            return None

    def _plainer(self, along: Role, cell: Cell, seen: dict[int, Ints]) -> bool:
        """Whether loops whose every number follows rules explain a role in fewer calls than the sides of a grid do."""
        try:
            found = self._role_by(cell, seen, precisely=True)
        except GivenUpError:
            return False
        plainer = found is not None and not found[1] and len(found[0].program.leaves) < len(along.program.leaves)
        if plainer and self.search.calls_only:
            raise UndecidedError
        return plainer

    def _role_by(self, cell: Cell, seen: dict[int, Ints], precisely: bool) -> Found | None:
        sequences = self._sequences(seen)
        trees = {
            place: self._by_turns(place, seen[place], sequence) if precisely else folded(sequence)
            for place, sequence in sequences.items()
        }
        for template in _templates([trees[place] for place in sorted(seen, reverse=True)]):
            program = program_of(template)
            found = {
                place: likened(program, trees[place]) or matched(program, sequences[place].tolist()) for place in seen
            }
            places = {place: each for place, each in found.items() if each is not None}
            shown = all(any(each.leaves[leaf.number].size for each in places.values()) for leaf in program.leaves)
            if len(places) == len(found) and shown:
                break
        else:
            return None
        if _same_in_all(program, places):
            return None
        unruled: dict[str, Floats] = {}
        counts = [self.search.count(program, number_, places, seen, unruled) for number_ in range(len(program.repeats))]
        if any(each is None for each in counts):
            return None
        rules = [self.search.rule(program, leaf, places, seen, unruled) for leaf in range(len(program.leaves))]
        # Partners tell the grids, whose sides loops may run along.
        counts = [
            self.search.count(program, number_, places, seen, {}) if each is not None and each.topology else each
            for number_, each in enumerate(counts)
        ]
        self.placed[id(program)] = places
        return Role(cell, program, tuple(rules), tuple(each for each in counts if each is not None)), unruled

    def _sequences(self, seen: dict[int, Ints]) -> dict[int, Ints]:
        """The shapes of the actions of a role, the same for all of its processes, by the place of the run."""
        return {place: self.runs[place].sequences[self.runs[place].classes[ranks[0]]] for place, ranks in seen.items()}

    def _along_sides(self, cell: Cell, seen: dict[int, Ints]) -> Found | None:
        """The role by what is done along each side of a grid, where that depends on the side's length."""
        amounts = np.array([shape.name in AMOUNTS for shape in self.shapes])
        partnered = np.array([bool(shape.peers) for shape in self.shapes])
        best: tuple[str, Sided] | None = None
        sequences = self._sequences(seen)
        calls = {
            place: Calls.of(self.runs[place].trace, ranks[spread(ranks.size, RANKS)], sequences[place], amounts)
            for place, ranks in seen.items()
        }
        for topology in self.search.topologies:
            sides = {place: TOPOLOGIES[topology](self.runs[place].count) for place in seen}
            if len(sides[min(sides)]) < 2:
                continue
            runs = [Seen(calls[place], sequences[place], partnered, sides[place]) for place in seen]
            sided = program_along_sides(runs)
            if sided is not None and (best is None or sided.astray < best[1].astray):
                best = topology, sided
        if best is None:
            return None
        topology, sided = best
        sides = {place: TOPOLOGIES[topology](self.runs[place].count) for place in seen}
        unruled: dict[str, Floats] = {}
        if (rules := self._rules_along(sided, topology, sides, seen, unruled)) is None:
            return None
        counts = [
            Attribute(topology, expression=Expression(0.0, ((1.0, f"{guard}(P{side})"),)))
            for side, guard in (sided.guards.get(each.number, (0, "")) for each in sided.program.repeats)
        ]
        for number_, count in sided.counts.items():
            counts[number_] = Attribute(expression=Expression(float(count)))
        self.along = True
        return Role(cell, sided.program, rules, tuple(counts)), unruled

    def _rules_along(
        self,
        sided: Sided,
        topology: str,
        sides: dict[int, tuple[int, ...]],
        seen: dict[int, Ints],
        unruled: dict[str, Floats],
    ) -> tuple[Rule, ...] | None:
        """The rules of all actions; those of sides that are longer than in any run as of the side that shows them."""
        program, places = sided.program, {place: sided.places(of) for place, of in sides.items()}
        dimensions = len(sides[min(sides)])
        self.search.grids.append(topology)
        where = {
            leaf.number: {place: each for place, each in places.items() if each.leaves[leaf.number].size}
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
                rules[number_] = self.search.rule(program, number_, where[number_], seen, unruled, partners)
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
            for kept in (self.search.single, self.search.turned):
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


def _of_lengths(
    role: Role, topology: str, shapes: Sequence[Shape], roles: Mapping[Cell, Role], counts: Sequence[int]
) -> Role:
    """The role, with the lengths that rules of any role share out seen in all of its messages."""
    known = [each for one in roles.values() for rule in one.rules for each in rule.numbers]
    lengths, dealt = shared_lengths(known), dealt_lengths(known)
    if not lengths and not dealt:
        return role
    rules = []
    for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
        shape = shapes[leaf.shape]
        numbers = tuple(
            each
            if place in shape.peers or shape.name in AMOUNTS
            else dealt_alike(of_known_lengths(each, lengths, counts, topology), dealt, counts, topology)
            for place, each in enumerate(rule.numbers)
        )
        rules.append(replace(rule, numbers=numbers))
    return replace(role, rules=tuple(rules))


def _templates(trees: Sequence[tuple[Node, ...]]) -> Iterator[tuple[Node, ...]]:
    """What a program may look like: one of its runs, or all together where each lacks a loop that others have."""
    yield from trees
    together: tuple[Node, ...] | None = trees[0]
    for tree in trees[1:]:
        together = together and merged(together, tree)
    if together and len(trees) > 1:
        yield together


def _calls_once(sequence: Ints) -> bool:
    """Whether each shape of a sequence stands at one place of its program, in whatever loops."""
    leaves = [leaf.shape for leaf in program_of(folded(sequence)).leaves]
    return len(set(leaves)) == len(leaves)
