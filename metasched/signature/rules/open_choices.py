"""What the runs left open between two rules: the run that would decide, and the application by the other rule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from metasched.signature.equations.expressions import CARRIED, LARGEST_NUMBER, Env, Expression, place_on
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application, Role, Rule
from metasched.signature.rules.attributes import Attribute, Axis, with_grid
from metasched.signature.rules.both_ways import either_way, open_ways, turned_round
from metasched.signature.rules.expanding import sampled
from metasched.signature.rules.number_rules import SEVERAL
from metasched.signature.rules.open_numbers import (
    left_over,
    other_numbers,
    passes_on,
    rounds_along,
    to_itself,
    uncertain_numbers,
)
from metasched.signature.rules.presence import OPEN, OPEN_IF_ANY
from metasched.signature.rules.reporting import COMPARED, grids_of, possible_counts, words_of
from metasched.signature.rules.rule_search import USUAL
from metasched.signature.traces.actions import AMOUNTS, BYTE

#: Sides up to which neighbours differ in one bit, and in how many dimensions grids usually are.
LONGEST, DIMENSIONS = 2, 3
#: Runs that would decide between rules have fewer processes.
DECIDING = 257
#: The same of runs that have to be expanded to see it.
SMALL = 33
#: Into how many parts pieces are cut that may be several.
MOST_PARTS = 16
#: Turns of an inner loop that are expanded then: more than the rounds, one for each doubling of the processes.
MOST_ROUNDS = 32
#: What divides by n, by a root of it or by a side.
QUOTIENT = re.compile(r"1/(?:n|\(n-1\)|P\d|(?:sqrt|cbrt)\(n\))|floor[\dw]:\d+")
#: A step of a loop, or a power of two by it, which may stand beside that.
STEP = re.compile(r"(?:1/)?(?:2\^)?i\d{1,2}")
#: A side of a grid, and how often processes can be doubled, which a side may be as long as by chance.
SIDE, DOUBLINGS = re.compile(r"P\d|sqrt\(n\)|cbrt\(n\)"), ("doublings(n)", "rounds(n)")
#: The largest power of two up to n, which divided may come to the same as n does.
POWER = re.compile(r"power\(n\)")
#: The factor of all processes below one of a tree.
BELOW = re.compile(r"\*tree\([rp]\)")
#: The rule by the other choice, of each rule.
Change = Callable[[Attribute], Attribute]


@dataclass(frozen=True)
class OpenChoice:
    """A choice between two rules that the runs left open.

    Parameters
    ----------
    line : what was chosen, and the smallest run that would decide, in words.
    change : of each rule, for the other choice; None where the other one is not known but for how it rounds.
    """

    line: str
    change: Change | None = None

    def other(self, application: Application) -> Application | None:
        """The application by the other choice; None where that is not known."""
        return None if self.change is None else _changed(application, self.change)


def other_applications(application: Application, counts: Iterable[int]) -> list[Application]:
    """The applications by the other choices on which runs of some numbers of processes depend, each by one of them."""
    others = (each.other(application) for each in open_choices(application, counts))
    return [each for each in others if each is not None]


def open_rules(application: Application, counts: Iterable[int] | None = None) -> list[str]:
    """What the runs left open, one line for each choice: see :func:`open_choices`."""
    return [each.line for each in open_choices(application, counts)]


def open_choices(
    application: Application, counts: Iterable[int] | None = None, numbers: bool = True
) -> list[OpenChoice]:
    """What the runs left open of grids, turns, waits for nothing and shares, and the smallest run that would decide.

    Parameters
    ----------
    application : with the rules that were chosen.
    counts : only the choices on which runs of these numbers of processes depend; all where None.
    numbers : whether amounts whose rules few runs bear out are among them.
    """
    asked, found = None if counts is None else [*counts], list[OpenChoice]()
    for name in sorted(grids_of(application)):
        same = [
            other
            for other, sides in TOPOLOGIES.items()
            if other != name
            and not other.startswith(("greedy", "simgrid"))
            and all(sides(n) == TOPOLOGIES[name](n) for n in application.learned)
        ]
        for other in same[:1]:
            differ = partial(_other_sides, name, other)
            deciding = next(filter(differ, range(2, DECIDING)), 0)
            if deciding and _matters(differ, asked):
                found.append(
                    OpenChoice(
                        f"the runs do not tell {name} from {other}: the first is taken, a run of {deciding} processes "
                        "would decide",
                        partial(_on_grid, name, other),
                    )
                )
    return [
        *found,
        *_open_turns(application, asked),
        *_open_powers(application, asked),
        *_open_last_rounds(application, asked),
        *_open_distances(application, asked),
        *_open_bits(application, asked),
        *_open_ways(application, asked),
        *_open_waits(application, asked),
        *_open_shares(application, asked),
        *_open_steps(application, asked),
        *(_open_numbers(application, asked) if numbers else ()),
    ]


def _changed(application: Application, change: Change) -> Application:
    """The application with another rule in place of each; its grid changes as that of a rule does."""

    def rule(of: Rule) -> Rule:
        length = None if of.length is None else deep(of.length)
        return Rule(tuple(map(deep, of.numbers)), tuple(map(deep, of.lists)), length)

    def deep(of: Attribute) -> Attribute:
        return change(replace(of, table=tuple(map(deep, of.table))))

    def role(of: Role) -> Role:
        return replace(of, rules=tuple(map(rule, of.rules)), counts=tuple(map(deep, of.counts)))

    return replace(
        application,
        topology=change(Attribute(application.topology)).topology,
        roles={cell: role(each) for cell, each in application.roles.items()},
        parts={leaf: _changed(part, change) for leaf, part in application.parts.items()},
    )


def _on_grid(name: str, other: str, rule: Attribute) -> Attribute:
    """A rule on another grid where it is on one of a name."""
    where = rule.placement
    if where is not None and where.topology == name:
        rule = replace(rule, placement=replace(where, topology=other))
    return replace(rule, topology=other) if rule.topology == name else rule


def _only_if_any(rule: Attribute) -> Attribute:
    """The rule of a wait that is left out where no request is open."""
    by = rule.expression
    if by is None or all(atom != OPEN for _, atom in by.terms):
        return rule
    terms = tuple((slope, OPEN_IF_ANY if atom == OPEN else atom) for slope, atom in by.terms)
    return replace(rule, expression=replace(by, terms=terms))


def _in_place_of(rule: Attribute, other: Attribute, one: Attribute) -> Attribute:
    """Another rule in place of one, whether that states its grid or speaks of that of its part."""
    return replace(other, topology=one.topology) if one in (rule, replace(rule, topology="")) else one


def _open_turns(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Loops that run as often as a side is long, or as processes can be doubled, which was the same in all runs.

    Where messages go along the sides of a grid, loops are believed to do so, too. Turns that follow the largest power
    of two may as well follow all processes, divided and rounded down.
    """
    gone = {part.topology for each in application.attributes() for part in each.parts() if part.axes}
    rules = {
        count if count.topology else replace(count, topology=part.topology)
        for part in application.each()
        for role in part.roles.values()
        for count in role.counts
        if count.expression is not None and not count.expression.modulus
    }
    for rule in sorted(rules, key=str):
        doublings = DOUBLINGS if rule.topology not in gone else ()
        others = (
            *(_with_atom(rule, SIDE, atom) for atom in doublings), _with_atom(rule, POWER, "n"), _twice(rule),
            *rounds_along(rule, gone),
        )  # fmt: skip
        for other in filter(None, others):
            differ = partial(_other_value, rule, other)
            if any(map(differ, application.learned)):
                continue
            deciding = next(filter(differ, possible_counts(application, range(2, DECIDING))), 0)
            if deciding and _matters(differ, asked):
                yield OpenChoice(
                    f"the runs do not tell whether loops run {rule} ({rule.topology}) or {other} times: the first is "
                    f"taken, a run of {deciding} processes would decide",
                    partial(_in_place_of, rule, other) if other.topology == rule.topology else None,
                )
            break


def _twice(rule: Attribute) -> Attribute | None:
    """The rule of a loop that runs along a side, as one of a loop that runs twice where the side is longer than one."""
    slope, side = rule.product or (0.0, "")
    if not re.fullmatch(r"P\d", side):
        return None
    return replace(rule, expression=Expression(slope, ((slope, f"many({side})"),)))


def _open_powers(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Numbers that follow the largest power of two, which all processes came to in all runs, divided and rounded.

    Where messages go as far as powers of two, also those that follow all processes and may be what is left of them.
    """
    rules = {
        (part.shapes[leaf.shape].name, each if each.topology else replace(each, topology=part.topology))
        for part in application.each()
        for role in part.roles.values()
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True)
        for number in rule.numbers
        for each in number.parts()
        if each.expression is not None and not each.expression.modulus
    }
    left = passes_on(application)
    others = ((*each, _with_atom(each[1], POWER, "n") or (left_over(each[1], application.learned) if left else None))
              for each in sorted(rules, key=str))  # fmt: skip
    for action, rule, other in others:
        differ = partial(_other_value, rule, other or rule)
        if other is None or any(map(differ, application.learned)) or not _matters(differ, asked):
            continue
        deciding = next(filter(differ, possible_counts(application, range(2, DECIDING))), 0)
        if deciding:
            yield OpenChoice(
                f"the runs do not tell {rule} of {action} from {other}: the first is taken, a run of {deciding} "
                "processes would decide",
                partial(_in_place_of, rule, other),
            )


def _open_numbers(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Numbers of two terms that others of two come to in all runs as well, which are none below 0."""
    grids = sorted({*grids_of(application), *USUAL})
    larger = [*possible_counts(application, range(2, DECIDING))]
    for action, rule in sorted(uncertain_numbers(application), key=str):
        for other in other_numbers(rule, application.learned, grids):
            differ = partial(_other_value, rule, other)
            deciding = next(filter(differ, larger), 0)
            if deciding and _matters(differ, asked) and _value(other, larger[-1]) >= 0:
                yield OpenChoice(
                    f"the runs do not tell {rule} of {action} from {other}: the first is taken, a run of {deciding} "
                    "processes would decide"
                )
                break


def _open_distances(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Distances to partners that follow the largest power of two, which all processes, divided, came to in all runs."""
    axes = {axis for each in application.attributes() for part in each.parts() for axis in part.axes}
    others = {axis: other for axis in axes if (other := _of_all(axis)) is not None}
    others = {axis: other for axis, other in others.items()
              if not any(_elsewhere(axis, other, n) for n in application.learned)}  # fmt: skip

    def differ(count: int) -> bool:
        return any(_elsewhere(*both, count) for both in others.items())

    deciding = next(filter(differ, possible_counts(application, range(2, DECIDING))), 0) if others else 0
    if deciding and _matters(differ, asked):
        axis = max(others, key=str)
        yield OpenChoice(
            f"the runs do not tell whether partners are {axis.by} or {others[axis].by} away: the first is taken, a run "
            f"of {deciding} processes would decide",
            partial(_along, others),
        )


def _of_all(axis: Axis) -> Axis | None:
    """A shift by a part of the largest power of two, as one of all processes; None for others."""
    by = axis.by
    if axis.kind != "shift" or len(by.terms) != 1 or by.modulus or POWER.fullmatch(by.terms[0][1]) is None:
        return None
    return replace(axis, by=replace(by, terms=((by.terms[0][0], "n"),)))


def _elsewhere(axis: Axis, other: Axis, count: int) -> bool:
    """Whether two shifts by parts of the number of processes differ at one."""
    env = {"n": np.full(1, float(count))}
    return bool(axis.by(env)[0] != other.by(env)[0])


def _along(others: Mapping[Axis, Axis], rule: Attribute) -> Attribute:
    """A rule with other relations in place of some."""
    return replace(rule, axes=tuple(others.get(axis, axis) for axis in rule.axes))


def _open_last_rounds(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Messages of all processes as far as the largest power of two, which leads back where there are as many."""
    if application.features or any(to_itself(application, n) for n in application.learned):
        return
    differ = partial(to_itself, application)
    if (deciding := next(filter(differ, possible_counts(application, range(4, DECIDING))), 0)) and _matters(
        differ, asked
    ):
        yield OpenChoice(
            "the runs do not tell how far messages go that go as far as the largest power of two where there are as "
            f"many processes: to the sender itself, a run of {deciding} processes would decide"
        )


def _open_bits(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Partners that differ in one bit, which are neighbours as well in a grid whose sides are no longer than two."""
    axes = {axis for each in application.attributes() for part in each.parts() for axis in part.axes}
    largest = max(application.learned)
    # A grid of three dimensions has a longer side with more processes than these.
    if largest > LONGEST**DIMENSIONS or all(axis.kind != "bits" for axis in axes):
        return
    deciding = next(possible_counts(application, range(largest + 1, DECIDING)), 0)
    if deciding and _matters(lambda count: count > largest, asked):
        yield OpenChoice(
            "the runs do not tell partners that differ in one bit from neighbours in a grid whose sides were no longer "
            f"than two: the first is taken, a run of {deciding} processes would decide"
        )


def _open_ways(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Ways round sides of a grid to partners that were as far away the other way round in all runs."""
    either = {partner: sides for part in application.each() for partner, sides in open_ways(part).items()}

    def differ(count: int) -> bool:
        return any({*sides}.difference(either_way(partner, [count])) for partner, sides in either.items())

    deciding = next(filter(differ, possible_counts(application, range(2, DECIDING))), 0) if either else 0
    if deciding and _matters(differ, asked):
        partner = min((each for each in either if differ(deciding)), key=str)
        yield OpenChoice(
            f"the runs do not tell which way round partners are, such as {partner}: calls to one process go one way "
            f"after another, a run of {deciding} processes would decide",
            partial(_other_way, either),
        )


def _other_way(either: Mapping[Attribute, Collection[int]], rule: Attribute) -> Attribute:
    """A rule of partners that are the other way round open sides."""
    return turned_round(rule, either[rule]) if rule in either else rule


def _with_atom(rule: Attribute, of: re.Pattern[str], atom: str) -> Attribute | None:
    """A rule of one atom of a form, such as a side, with another in its place; None for others."""
    known = rule.expression
    if known is None or len(known.terms) != 1 or of.fullmatch(known.terms[0][1]) is None:
        return None
    return replace(rule, expression=replace(known, terms=((known.terms[0][0], atom),)))


def _open_waits(application: Application, asked: Sequence[int] | None) -> list[OpenChoice]:
    """Whether processes wait where they have no request open, which no run showed."""
    differ = partial(_waits_for_none, application)
    if OPEN not in words_of(application) or any(map(differ, application.learned)) or not _matters(differ, asked):
        return []
    deciding = next(filter(differ, possible_counts(application, range(2, SMALL))), 0)
    if asked is None and not deciding:
        return []
    line = "the runs do not tell whether processes call waitall where no request is open: it is assumed that they do"
    return [OpenChoice(line + (f", a run of {deciding} processes would decide" if deciding else ""), _only_if_any)]


def _waits_for_none(application: Application, count: int) -> bool:
    """Whether some process would wait for no request at all."""
    table = sampled(application, count, MOST_ROUNDS, 1).trace.table
    return any(
        table.shapes[shape].name.lower() == "waitall" and not numbers[0]
        for shape, numbers in zip(table.shape, table.numbers, strict=True)
    )


def _matters(differ: Callable[[int], bool], asked: Sequence[int] | None) -> bool:
    return asked is None or any(map(differ, asked))


def _other_sides(name: str, other: str, count: int) -> bool:
    """Whether a grid has other sides than another that is possible too."""
    return bool(TOPOLOGIES[other](count)) and TOPOLOGIES[other](count) != TOPOLOGIES[name](count)


def _open_shares(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Rules that divide, whose quotients were whole in all runs."""
    possible = [*possible_counts(application, range(*COMPARED))]
    for action, rule, in_bytes in sorted(_quotients(application), key=str):
        for finer in _finer(rule):
            differ = partial(_other_value, rule, finer)
            if not any(map(differ, application.learned)) and _matters(differ, asked):
                deciding = next(filter(differ, possible), 0)
                line = f"the runs do not tell {rule} of {action} from {finer}: the first is taken"
                line += f", a run of {deciding} processes would decide" if deciding else ""
                yield OpenChoice(line, partial(_in_place_of, rule, finer))
                break
        uneven = partial(_uneven, rule, _piece(rule, application.learned) if in_bytes else 1)
        if any(map(uneven, application.learned)) or not _matters(uneven, asked):
            continue
        deciding = next(filter(uneven, possible), 0)
        if deciding:
            yield OpenChoice(
                f"the runs do not tell how {rule} of {action} is rounded: whatever is divided is rounded down, a run "
                f"of {deciding} processes would decide"
            )


def _open_steps(application: Application, asked: Sequence[int] | None) -> Iterator[OpenChoice]:
    """Places along a side that differ from step to step and with its length, of which the runs show too few lengths.

    Each step has a rule of its own there, and any two places follow one.
    """
    for name, side in sorted(_stepped_places(application)):
        shown = sorted({TOPOLOGIES[name](n)[side] for n in application.learned})
        differ = partial(_of_another_length, name, side, shown)
        if len(shown) >= SEVERAL or not _matters(differ, asked):
            continue
        deciding = next(filter(differ, possible_counts(application, range(*COMPARED))), 0)
        if deciding:
            yield OpenChoice(
                f"the runs do not tell which places along side {side} of {name} the steps of a loop are about where it "
                f"is not {' or '.join(map(str, shown))} long, a run of {deciding} processes would decide"
            )


def _stepped_places(application: Application) -> set[tuple[str, int]]:
    """Grids and sides along which a place differs from step to step of a loop, and in some step with the length."""
    found: set[tuple[str, int]] = set()
    for rule in (part for each in application.attributes() for part in each.parts() if part.loop >= 0):
        places: dict[tuple[str, int], set[Expression]] = {}
        for each in rule.table:
            for side, axis in enumerate(each.axes):
                if axis.kind == "place":
                    places.setdefault((each.topology, side), set()).add(axis.by)
        # What is below 0 is counted from the end of a side.
        found |= {
            of for of, several in places.items()
            if len(several) > 1 and any(by.terms or by.constant < 0 for by in several)
        }  # fmt: skip
    return found


def _of_another_length(name: str, side: int, shown: Sequence[int], count: int) -> bool:
    """Whether a side has several places and is as long as in none of the runs."""
    sides = TOPOLOGIES[name](count)
    return bool(sides) and sides[side] not in (1, *shown)


def _quotients(application: Application) -> set[tuple[str, Attribute, bool]]:
    """Rules of whole numbers that divide something by n or by sides: the action's name, the rule, whether of bytes."""
    found = set()
    for part, role in ((each, role) for each in application.each() for role in each.roles.values()):
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            name = part.shapes[leaf.shape].name
            in_bytes = rule.numbers[-1:] == (Attribute(expression=Expression(float(BYTE))),)
            for each in rule.each() if name not in AMOUNTS else ():
                for one in each.table or (each,):
                    if one.expression is None:
                        continue
                    # Of messages in a tree, what each process below them has is divided.
                    terms = tuple((slope, BELOW.sub("", atom)) for slope, atom in one.expression.terms)
                    one = replace(one, expression=replace(one.expression, terms=terms))
                    atoms = [atom for _, atom in terms]
                    factors = [[f for f in atom.split("*") if not STEP.fullmatch(f)] for atom in atoms]
                    if factors and all(each and all(map(QUOTIENT.fullmatch, each)) for each in factors):
                        # A rule without a grid of its own speaks of that of the part.
                        one = one if one.topology else replace(one, topology=part.topology)
                        found.add((name, one, in_bytes))
    return found


def _finer(rule: Attribute) -> Iterator[Attribute]:
    """The shares of the same in smaller pieces; none where a rule is no share, or its pieces are no multiples."""
    known = rule.product
    share = re.fullmatch(r"(floor[\dw]):(\d+)", known[1]) if known is not None else None
    if known is None or share is None:
        return
    for parts in range(2, MOST_PARTS + 1):
        if known[0] % parts == 0:
            atom = f"{share[1]}:{parts * int(share[2])}"
            yield replace(rule, expression=Expression(0.0, ((known[0] / parts, atom),)))


def _at(rule: Attribute, count: int) -> Env:
    """The names as a rule that divides sees them in the first process, at the first steps of loops."""
    steps = {name: np.zeros(1) for each in rule.expressions for name in each.names if STEP.fullmatch(name)}
    return with_grid({**steps, "n": np.full(1, float(count)), "r": np.zeros(1)}, TOPOLOGIES[rule.topology](count))


def _value(rule: Attribute, count: int, rounded: bool = True) -> float:
    return float(rule(_at(rule, count), count, rounded)[0])


def _other_value(rule: Attribute, other: Attribute, count: int) -> bool:
    return _value(rule, count) != _value(other, count)


def _piece(rule: Attribute, learned: Sequence[int]) -> int:
    """The bytes of a number of which all messages of the runs hold whole ones, as far as they tell."""
    return math.gcd(LARGEST_NUMBER, *(round(_value(rule, count)) for count in learned))


def _uneven(rule: Attribute, piece: int, count: int) -> bool:
    """Whether not all that a rule divides comes out even at a count, in pieces of so many bytes."""
    env = _at(rule, count)
    terms = rule.expression.terms if rule.expression is not None else ()
    shares = [share for _, atom in terms for share in re.findall(r"floor([\dw]):(\d+)", atom)]
    whole = _value(rule, count, rounded=False)
    left = any(int(size) % place_on(line, env)[0][0] for line, size in shares)
    return left or abs(whole - round(whole)) >= CARRIED or round(whole) % piece > 0
