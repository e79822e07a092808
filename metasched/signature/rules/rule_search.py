"""The search for the rules of the numbers of a program's actions, and of how often its loops run."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.signature.computation.instruction_groups import (
    ALIKE,
    LEVELS,
    MOST_GROUPS,
    Placement,
    grouped,
    levels,
    placed,
    profiled,
)
from metasched.signature.equations.expressions import LISTED as ALONG
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.transforms import PowerLaw
from metasched.signature.rules.application import Rule
from metasched.signature.rules.attributes import Attribute, grid_names
from metasched.signature.rules.completion import Completed
from metasched.signature.rules.faces import off_the_way
from metasched.signature.rules.fits import add
from metasched.signature.rules.known_rules import attribute
from metasched.signature.rules.neighbours import Neighbours
from metasched.signature.rules.number_rules import number, regression, shared_out
from metasched.signature.rules.numbered_runs import NumberedRun, grid_of_neighbours, spread
from metasched.signature.rules.rank_rules import in_steps
from metasched.signature.rules.samples import Samples
from metasched.signature.rules.step_rules import constants, like_table
from metasched.signature.rules.tree_rules import by_powers, children, of_subtrees, parent_or_child
from metasched.signature.traces.actions import AMOUNTS, Shape
from metasched.signature.traces.matching import Places, Program

#: Computations are written to six digits.
WRITTEN = 2e-5
#: Grids whose sides numbers depend on where no peer shows one, and how many are tried.
USUAL, MOST_GRIDS = ("grid 01", "grid 10", "grid 012"), 3
USUAL_FIRST = ("grid", "equal sides")
#: Ranks, places, and numbers of a list that rules are looked for on, of each count and action.
RANKS, PLACES, LISTED = 12, 72, 12
#: How far totals of instructions may be from their mean: counted ones, and those known from measured times.
STEADY, STEADY_TIMED = 0.005, 1.0 - ALIKE
#: The number of rounds where there is a power of two of processes, of all or along a side.
LOGARITHM = re.compile(r"log2(\((?:n|P\d)\))")
#: Samples that are kept for other numbers with the same rows.
MOST_SAMPLES = 64


class GivenUpError(Exception):
    """Too many partners follow no rule."""


class UndecidedError(Exception):
    """Which program explains a role depends on its computations, which were left out."""


class RuleSearch:
    """The search for rules, and what roles teach each other: rules that hold in one are tried first in the next.

    Parameters
    ----------
    runs, shapes : what is explained.
    topology, topologies : the grid of the roles, and all that the counts allow.
    timed : whether computation is known from measured times.
    loosely : whether loops without messages may run as often as on average.
    patience : how many partners may be without a rule before it is given up.
    in_tree : whether the processes form a binomial tree; a run is then there for each number of children.
    believed : rules of partners that are tried before all others.
    completed : the runs, where they were completed by null communications: partners are labels then.
    strict : whether it is given up at the first call that follows no rule.
    calls_only : whether computations are left out, which have the rule of 0 then.
    """

    def __init__(
        self,
        runs: Sequence[NumberedRun],
        shapes: Sequence[Shape],
        topology: str,
        topologies: Sequence[str],
        timed: bool,
        loosely: bool = False,
        patience: int = 0,
        in_tree: bool = False,
        believed: Sequence[Attribute] = (),
        completed: Completed | None = None,
        strict: bool = False,
        calls_only: bool = False,
    ) -> None:
        self.runs, self.shapes, self.topology, self.timed = runs, shapes, topology, timed
        self.loosely, self.patience, self.lost, self.in_tree = loosely, patience, 0, in_tree
        self.believed, self.completed, self.strict = tuple(believed), completed, strict
        self.calls_only = calls_only
        #: How many numbers of processes there are.
        self.counts = len({run.count for run in runs})
        rest = [name for name in topologies if name not in ("line", topology)]
        # Grids of which a side is the same at all counts, or four-dimensional ones, come last.
        rest.sort(key=lambda name: not name.startswith(USUAL_FIRST) or name in ("grid 0123", "grid 3210"))
        self.topologies = ["line", *([topology] if topology != "line" else []), *rest]
        #: The grid in which all partners are neighbours, where there is one.
        self.beside = "" if in_tree or completed is not None else grid_of_neighbours(runs, self.topologies)
        #: Grids that partners of messages stand in.
        self.grids: list[str] = []
        #: Whether other roles may explain what follows no rule.
        self.divided = False
        #: Rules by the place of the number: of all roles, those without a table, and those along another side.
        self.pool: dict[tuple[object, ...], list[Attribute]] = {}
        self.single: dict[tuple[object, ...], list[Attribute]] = {}
        self.turned: dict[tuple[object, ...], list[Attribute]] = {}
        #: What messages hold, by their direction.
        self.neighbours = Neighbours()
        #: Numbers that no rule was found for.
        self.without: set[tuple[object, ...]] = set()
        self.sampled: OrderedDict[tuple[object, ...], Samples] = OrderedDict()

    def count(
        self, program: Program, repeat: int, places: dict[int, Places], seen: dict[int, Ints],
        unruled: dict[str, Floats],
    ) -> Attribute | None:  # fmt: skip
        """How often a loop is run; what of it follows no rule is added to ``unruled``."""
        columns: list[Floats] = []
        of: list[int] = []
        depth = len(program.repeats[repeat].loops)
        for place, each in places.items():
            table = each.repeats[repeat].astype(np.float64)
            if not len(table):
                continue
            table = table[spread(len(table), 4 * PLACES)]
            outer = counts_around(program, program.repeats[repeat].loops, each, table[:, :-1])
            shown = seen[place][spread(seen[place].size, RANKS)] if self.in_tree else seen[place][:1]
            rows = np.tile(np.concatenate([table[:, :-1], outer, table[:, -1:]], axis=1), (shown.size, 1))
            columns.append(np.concatenate([np.repeat(shown, len(table))[:, None], rows], axis=1))
            of += [self.runs[place].count] * len(rows)
        if not columns:
            return Attribute(expression=Expression())
        table = np.concatenate(columns)
        samples = self._samples(np.array(of), table, depth)
        body = tuple(leaf.shape for leaf in program.leaves if repeat in leaf.loops)
        found = self._pooled(
            ("count", body),
            samples,
            table[:, -1],
            lambda: (
                (children(samples, table[:, -1]) if self.in_tree else None)
                or number(samples, table[:, -1], USUAL[:2] if USUAL[1] in self.topologies else USUAL[:1])
            ),
        )
        if found is not None and self.grids and _elsewhere(found, self.grids):
            # Loops run along the sides of a grid that messages go along, if these tell their counts as simply.
            along = number(samples, table[:, -1], [*dict.fromkeys(self.grids)])
            found = along if along is not None and _terms(along) <= _terms(found) else found
        if found is not None and self.completed is not None and found.expression is not None:
            # What would be done in more rounds than there are has no partner.
            terms = tuple((slope, LOGARITHM.sub(r"rounds\1", atom)) for slope, atom in found.expression.terms)
            return replace(found, expression=replace(found.expression, terms=terms))
        if found is not None or not self.loosely or any(self.shapes[shape].peers for shape in body):
            return found
        for leaf in (each.number for each in program.leaves if repeat in each.loops):
            for place, each in places.items():
                run, at = self.runs[place], each.leaf(leaf)[0]
                seconds = sum(float(run.seconds[run.trace.processes[rank][at]].sum()) for rank in seen[place].tolist())
                add(unruled, self.shapes[program.leaves[leaf].shape].name, at.size * seen[place].size, seconds)
        return regression(samples, table[:, -1])

    def _samples(self, of: Ints, table: Floats, depth: int) -> Samples:
        key = of.tobytes(), table.tobytes(), depth
        if key in self.sampled:
            self.sampled.move_to_end(key)
            return self.sampled[key]
        env = {"r": table[:, 0]}
        env |= {f"i{each}": table[:, 1 + each] for each in range(depth)}
        env |= {f"c{each}": table[:, 1 + depth + each] for each in range(depth)}
        self.sampled[key] = Samples(of, env, depth, self.topology)
        if len(self.sampled) > MOST_SAMPLES:
            self.sampled.popitem(last=False)
        return self.sampled[key]

    def _pooled(
        self, key: tuple[object, ...], samples: Samples, values: Floats, search: object, tolerance: float = 0.0
    ) -> Attribute | None:
        """A rule that another role has, where it holds here too; else one of its own, kept where it is well founded."""
        known = self.pool.setdefault(key, [])
        for each in sorted(known, key=lambda rule: rule.size):
            if samples.holds(each, values, tolerance):
                return each
        found: Attribute | None = search()  # type: ignore[operator]
        if found is not None and len(samples.distinct) == self.counts:
            known.append(found)
        return found

    def rule(
        self,
        program: Program,
        leaf: int,
        places: dict[int, Places],
        seen: dict[int, Ints],
        unruled: dict[str, Floats],
        partners: Mapping[int, Attribute] | None = None,
    ) -> Rule:
        """The rules of one action's numbers, those of partners as far as they are not known.

        Actions of which a number follows no rule are added to ``unruled``.
        """
        shape_number, loops = program.leaves[leaf].shape, program.leaves[leaf].loops
        shape, depth = self.shapes[shape_number], len(loops)
        if self.calls_only and shape.name in AMOUNTS:
            return Rule((Attribute(expression=Expression()),) * shape.numbers)
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
            some = spread(at.size, PLACES)
            ranks = seen[place][_shown(run, seen[place], at[some])]
            steps = taken[some].astype(np.float64)
            outer = counts_around(program, loops, each, steps)
            here = np.concatenate([steps, outer], axis=1)
            columns.append(
                np.concatenate([np.repeat(ranks, some.size)[:, None], np.tile(here, (ranks.size, 1))], axis=1)
            )
            numbers = np.concatenate([run.trace.processes[rank][at[some]] for rank in ranks.tolist()])
            actions.append((place, numbers))
            of += [run.count] * numbers.size
        samples = self._samples(np.array(of), np.concatenate(columns), depth)
        made = np.concatenate([~self.runs[place].missing[each] for place, each in actions])
        tolerance = WRITTEN if shape.name in AMOUNTS else 0.0
        sound = True
        by_column: dict[int, Attribute] = {}
        ends, of_column = np.zeros(0), dict[int, Floats]()
        # Partners first: their grid and direction say whose sides the amount of a message is shared along.
        for column in sorted(range(shape.numbers), key=lambda each: each not in shape.peers):
            values = np.concatenate([self.runs[place].column(shape_number, column)[each] for place, each in actions])
            of_column[column] = values
            if self.completed is not None and not shape.lists:
                partner = by_column.get(min(shape.peers, default=-1))
                key = shape_number, column
                by_column[column], ruled = self._completed(samples, values, key, made, tolerance, partner)
                if shape.peers and column not in shape.peers:
                    by_column[column] = off_the_way(by_column[column], by_column[shape.peers[0]], samples, made)
                if tolerance and by_column[column].law is not None:
                    by_column[column], ruled = self._groups(samples, values, (shape_number, column), leaf, places, seen)
                sound = sound and ruled
                continue
            if partners and column in partners:
                by_column[column] = partners[column]
                continue
            peer = column in shape.peers
            root = column == shape.root
            below = of_subtrees(samples, values, ends) if self.in_tree and shape.peers and not peer else None
            ends = values if peer else ends
            one, ruled = (
                (below, True)
                if below is not None
                else self._number(samples, values, (shape_number, column), peer, tolerance, bool(partners), root)
            )
            if partners and len(samples.distinct) < self.counts and not _plain_share(one):
                one, ruled = regression(samples, values), False
            partner = None
            if shape.peers and column not in shape.peers:
                partner = in_steps(by_column[shape.peers[0]], samples, of_column[shape.peers[0]])
            if tolerance and one.law is not None:
                one, ruled = self._groups(samples, values, (shape_number, column), leaf, places, seen)
            one = off_the_way(one, partner, samples, made)
            everywhere = len(samples.distinct) == self.counts
            by_column[column] = self.neighbours.taught(
                (shape_number, column), one, partner, samples, values, everywhere
            )
            sound = sound and ruled
        found = [by_column[column] for column in range(shape.numbers)]
        if shape.lists:
            lists, length, ruled = self._lists(shape_number, samples, actions, np.array(of))
            sound = sound and ruled
            rule = Rule(tuple(found), lists, length)
        else:
            rule = Rule(tuple(found))
        if not sound:
            add(unruled, shape.name, events, seconds)
        return rule

    def _completed(
        self, samples: Samples, values: Floats, key: tuple[int, int], made: Flags, tolerance: float,
        partner: Attribute | None,
    ) -> tuple[Attribute, bool]:  # fmt: skip
        """The rule of a number in completed runs: of a partner by its label, of others where the call is made."""
        number_, column = key
        shape, known = self.shapes[number_], self.completed
        if known is None:
            raise TypeError("runs are completed")
        if shape.name.lower() == "waitall":
            return known.waits, True
        some, wanted, peer = samples, values, column in shape.peers and column not in shape.nulls
        if not peer and not made.all():
            some, wanted = samples.part(made), values[made]
        one, ruled = (by_powers(some, wanted) if not tolerance else None), True
        if peer and known.relations[number_].steps:
            one = constants(samples, values) or one
        elif partner is not None and partner.table and not tolerance and np.ptp(wanted):
            # What differs from one way to another follows from the way, not from the step of the loop.
            grids = [*dict.fromkeys(self.grids)][:1]
            one = number(some, wanted, grids) or like_table(
                partner, some, wanted, lambda part, has: number(part, has, grids)
            )
        if one is None:
            one, ruled = self._number(some, wanted, key, False, tolerance)
        if peer:
            rule = known.relations[number_].rule(one) if ruled else None
            if rule is None:
                raise GivenUpError
            self.grids += [each.topology for each in rule.parts() if each.axes and each.topology != "line"]
            return rule, True
        return one, ruled

    def _groups(
        self, samples: Samples, values: Floats, column: tuple[int, int], leaf: int, places: dict[int, Places],
        seen: dict[int, Ints],
    ) -> tuple[Attribute, bool]:  # fmt: skip
        """The instructions of a computation that follows no rule, by groups of processes; whether there are such."""
        steady = STEADY_TIMED if self.timed else STEADY
        by_rank: dict[int, dict[int, float]] = {}
        for place, each in places.items():
            run = self.runs[place]
            at = each.leaf(leaf)[0]
            if not at.size:  # No loop runs there at this count.
                continue
            at = at[spread(at.size, PLACES)]
            for rank in seen[place].tolist():
                amount = float(run.column(*column)[run.trace.processes[rank][at]].mean())
                by_rank.setdefault(run.count, {})[rank] = amount
        amounts = {n: np.array([each[rank] for rank in sorted(each)]) for n, each in by_rank.items()}
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
            workers = all(each.size == n - 1 for n, each in chosen.items())
            return shared_out(rows, np.concatenate([*chosen.values()]), steady, workers)

        if many == {1}:
            return law(-1, steady), True
        ranks = {n: np.array(sorted(each)) for n, each in by_rank.items()}
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
        root: bool = False,
    ) -> tuple[Attribute, bool]:
        few = len(samples.distinct) < self.counts
        if not few and np.all(values == values[0]) and not peer:
            return number(samples, values) or regression(samples, values), True
        if self.timed and tolerance:
            return regression(samples, values), True

        def search() -> Attribute | None:
            grids = dict.fromkeys([*self.grids, *(name for name in USUAL if name in self.topologies)])
            # Along sides, what another side shows is believed before what a side's own few lengths would tell.
            tried = self.single.get(key, ()) if few else self.turned.get(key, ()) if along else ()
            simple = [*self.believed] * peer + sorted(tried, key=lambda rule: (rule.size, str(rule)))
            chosen = [*grids][:MOST_GRIDS]
            # Where there is no rule the search is longest, and many actions of a program have the same numbers.
            question = (samples.fingerprint(values), peer, tolerance, tuple(chosen), tuple(simple))
            if question in self.without:
                return None
            # A root in a row of a grid is a place there, like a partner.
            found = parent_or_child(samples, values) if self.in_tree and peer else None
            if found is None and root:
                found = attribute(samples, values, self.topologies, True, tolerance, chosen, simple, self.beside)
            found = found or attribute(samples, values, self.topologies, peer, tolerance, chosen, simple, self.beside)
            if found is None:
                self.without.add(question)
                self.lost += peer
                if self.lost > self.patience:
                    raise GivenUpError
            return found

        found = self._pooled(key, samples, values, search, tolerance)
        if found is None and self.strict and not tolerance:
            raise GivenUpError
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
        picked = [spread(int(size), LISTED) for size in lengths]
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


def _shown(run: NumberedRun, ranks: Ints, at: Ints) -> Ints:
    """Which processes of a role rules are looked for on: some, and of those that make each call the outermost."""
    some = spread(ranks.size, RANKS)
    if not run.missing.any():
        return some
    made = np.stack([~run.missing[run.trace.processes[rank][at]] for rank in ranks.tolist()])
    last = ranks.size - 1 - np.argmax(made[::-1], axis=0)
    return np.unique(np.concatenate([some, np.argmax(made, axis=0), last]))


def _elsewhere(rule: Attribute, grids: Sequence[str]) -> bool:
    """Whether a number depends on the sides of another grid than some."""
    return rule.topology not in ("", *grids) and any(
        each.names & grid_names(rule.topology) for each in rule.expressions
    )


def _terms(rule: Attribute) -> int:
    """How many terms a rule has in all."""
    return sum(len(each.terms) for each in rule.expressions)


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


def counts_around(program: Program, loops: tuple[int, ...], places: Places, steps: Floats) -> Floats:
    """How often the loops around an action ran, one column a loop, for each row of steps."""
    columns = []
    for depth, loop in enumerate(loops):
        table = places.repeats[loop].astype(np.float64)
        if np.all(table[:, -1] == table[0, -1]):
            columns.append(np.full(len(steps), table[0, -1]))
            continue
        known = {tuple(row[:-1]): row[-1] for row in table.tolist()}
        columns.append(np.array([known[tuple(row[:depth])] for row in steps.tolist()]))
    return np.stack(columns, axis=1) if columns else np.zeros((len(steps), 0))
