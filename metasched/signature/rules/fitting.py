"""Fitting an application to traces of a few process counts: roles, their programs, and the rules of all numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE
from metasched.signature.computation.workloads import one_workload
from metasched.signature.equations.topologies import TOPOLOGIES, different, dimensions_of
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import FOLDED
from metasched.signature.rules.both_ends import BothEnds
from metasched.signature.rules.completion import Completed, Incomplete, completed, related
from metasched.signature.rules.expanding import expanded, lines, positions, sound
from metasched.signature.rules.fits import Fit, Irregular, add, shares_by_name
from metasched.signature.rules.irregular import statistical
from metasched.signature.rules.numbered_runs import NumberedRun, by_children, ranks_seen, tagged_shapes, whole_of
from metasched.signature.rules.open_choices import open_choices
from metasched.signature.rules.origins import origins
from metasched.signature.rules.received_bytes import by_rules, without
from metasched.signature.rules.reporting import alike_counts, possible_counts
from metasched.signature.rules.role_search import RoleSearch
from metasched.signature.rules.roles import TREES, Cell, candidates, cells, different_cells
from metasched.signature.rules.rule_search import GivenUpError, RuleSearch, UndecidedError
from metasched.signature.traces.actions import AMOUNTS, PART, TURN, Shape
from metasched.signature.traces.message_order import in_order
from metasched.signature.traces.parts import cut
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.turning import counted_from

#: How many ways to see the roles are tried out, of those that the order of calls allows.
MOST_TRIED = 8
#: Partners without a rule up to which roles are believed.
MOST_FAILED = 4
#: From which share of calls with rules on a whole program is not tried again with its messages in order.
NEARLY = 0.95
#: Of how many processes of the largest run one role has to explain two, where larger runs ask for roles not seen.
MOST_ROLES_OF = 2
#: How many roles there may be at most for each process of the largest run.
MOST_ROLES = 0.75
#: Roles whose programs are completed each by itself, simplest first, and on how many grids distances are tried.
COMPLETED, MOST_LINES = ("", "begins", "borders"), 14
#: Fewest different counts that a rule in n can be checked on.
FEWEST = 3


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
    for count, many in Counter(len(trace.processes) for trace in traces).items():
        if many > 1:
            raise InputError(f"there are {many} signatures of {count} processes, expected one of each number")
    if len(counts) < FEWEST:
        listed = ", ".join(map(str, counts))
        raise InputError(
            f"there are signatures of {listed} processes, expected at least {FEWEST} different counts: each run "
            "alone still gives its phases and weights (metasched signature extract)"
        )
    ordered = [by_count[count] for count in counts]
    _same_program(ordered, timed)
    completion = cache(partial(_completed, ordered, timed))
    found = _whole(ordered, timed, completion)
    believed = found is not None and _believed(found)
    if found is not None and believed and _explains(found):
        return found
    if (whole := completion() or _from_another(ordered, timed)) is not None and (not believed or _explains(whole)):
        return whole
    if found is not None and believed:
        return found
    if found is not None and found.partners and (other := _others(ordered, timed)) is not None:
        return other
    again = None
    # Where nearly all messages follow rules as they are, a few places need another order: its parts tell which.
    nearly = found is not None and not found.partners and _grows(found) and found.calls_ruled >= NEARLY
    if not nearly and (again := _whole([in_order(trace) for trace in ordered], timed, completion)) is not None:
        again = replace(again, in_order=True)
        if _believed(again):
            return again
    parts = _in_parts(ordered, timed)
    found = max(
        filter(None, (found, again, parts)),
        # Rules of all partners of whole programs that are still here do not hold in larger runs.
        key=lambda each: (_grows(each) and (each is parts or not each.partners), each.partners, each.ruled),
        default=None,
    )
    if found is None:
        raise InputError(
            "the processes have no roles that grids of these counts explain, or their programs differ: expected runs "
            "of one program with one workload"
        )
    return found


def _whole(
    traces: Sequence[Trace], timed: bool, completion: Callable[[], Fit | None], part: bool = False
) -> Fit | None:
    """The rules of whole programs, or of a part of them; None where no roles explain them."""
    tagged = tagged_shapes(traces)
    # Where tags tell processes apart, not places of the program, there are no roles with them.
    for tags in (tagged, set()) if tagged else (tagged,):
        numbered: dict[tuple[Shape, float], int] = {}
        runs = [NumberedRun(trace, numbered, tags) for trace in traces]
        best = _best(runs, [shape for shape, _ in numbered], timed, part, completion=completion)
        if best is not None:
            return _checked(best, runs)
    return None


def _others(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of other roles, where the first that explain the runs explain no larger one.

    None where none do, or where several do that say different things of larger runs: then the runs leave them open.
    """
    tags, numbered = tagged_shapes(traces), dict[tuple[Shape, float], int]()
    runs = [NumberedRun(trace, numbered, tags) for trace in traces]
    counts, shapes = [run.count for run in runs], [shape for shape, _ in numbered]
    agreed: Fit | None = None
    topologies = different(counts)
    for features, topology in candidates(topologies):
        seen = {*chain.from_iterable(different_cells(features, topology, count) for count in counts)}
        if not _shared(len(seen), counts) or not _reaches(features, topology, _larger(counts, topology), seen):
            continue
        larger = [n for n in _like_larger(counts, topology) if _reaches(features, topology, [n], seen)]
        # No rule may stand in a grid that is not possible there.
        larger = [n for n in larger if all(TOPOLOGIES[name](n) for name in topologies)]
        found = None
        # The rules of computations take longest and most roles fail without them; counted ones say which roles divide.
        for calls_only in (True, False) if timed else (False,):
            ends = BothEnds(features, topology, shapes, larger)
            with suppress(UndecidedError):
                found = _best(runs, shapes, timed, roles=[(features, topology)], ends=ends, calls_only=calls_only)
                if found is None:
                    break
        # What holds in no larger run is not compared with those that there are.
        if found is None or not found.partners or found.calls_ruled < 1.0 or not _holds(found):
            continue
        found = _checked(found, runs)
        if found.calls_ruled == 1.0:
            if agreed is not None and not _agree(agreed.application, found.application):
                return None
            agreed = agreed or found
    return agreed


def _agree(one: Application, other: Application) -> bool:
    """Whether two explanations of the same runs say the same of larger ones."""
    counts = [*possible_counts(one, possible_counts(other, _like_larger(one.learned, one.topology)))]
    made = [[expanded(each, count) for count in counts] for each in (one, other)]
    return bool(counts) and all(
        process == wanted
        for mine, theirs in zip(*made, strict=True)
        for process, wanted in zip(lines(mine), lines(theirs), strict=True)
    )


def _completed(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of programs that make the calls whose partner exists; None where some call follows no rule.

    They hold where all of a process's calls are known, and where messages have both ends in larger runs.
    """
    incomplete, runs = Incomplete(traces), [NumberedRun(trace, {}, set()) for trace in traces]
    # Sides of the same length in all runs are no sides of three that happen to be as long.
    topologies = sorted(different([run.count for run in runs]), key=dimensions_of)
    ways = ((way, features) for way in related(incomplete, topologies[:MOST_LINES]) for features in COMPLETED)
    for relations, features in ways:
        whole = completed(incomplete, features, relations)
        if whole is None:
            continue
        found = _best(whole.runs, whole.shapes, timed, whole=whole)
        if found is None:
            continue
        found = _checked(found, runs)
        if found.partners and found.calls_ruled == 1.0 and _grows(found) and _holds(found):
            return found
    return None


def _from_another(traces: Sequence[Trace], timed: bool, part: bool = False) -> Fit | None:
    """The rules of ranks that are counted from another process than 0; None where some call follows no rule."""
    for origin in origins(traces):
        turned = [counted_from(trace, origin.at(len(trace.processes))) for trace in traces]
        completion = cache(partial(_completed, turned, timed))
        found = _whole(turned, timed, completion, part)
        if found is None or not (found.partners and found.calls_ruled == 1.0 and _grows(found) and _holds(found)):
            found = completion()
        if found is not None:
            return replace(found, application=replace(found.application, origin=origin))
    return None


def _in_parts(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of the calls between collective operations, each part with its own roles; None where none hold.

    A part that follows no rule is modelled by its statistics.
    """
    between: dict[tuple[str, str], int] = {}
    cuts = [cut(trace, between) for trace in traces]
    whole = [each for each in cuts if each is not None]
    if len(whole) < len(cuts):
        return None
    numbered: dict[tuple[Shape, float], int] = {}
    runs = [NumberedRun(each.outside, numbered, {Shape(PART, 1)}) for each in whole]
    shapes, tags = [shape for shape, _ in numbered], [int(tag) for _, tag in numbered]
    places = [(before or "the beginning", after or "the end") for before, after in between]
    topologies = different([run.count for run in runs])
    search = RoleSearch(RuleSearch(runs, shapes, "line", topologies, timed, loosely=True), "")
    seen = ranks_seen(runs, "", "line")
    outside = search.fit(seen) if seen is not None else None
    if outside is None:
        return None
    (role,) = outside.application.roles.values()
    placed = search.placed[id(role.program)]
    marked = [np.cumsum([shapes[shape].name == PART for shape in run.sequences[0].tolist()]) - 1 for run in runs]
    everything = whole_of([NumberedRun(trace, {}, set()) for trace in traces])
    unruled = {
        name: np.array([share, outside.times[name]]) * whole_of(runs)
        for name, share in outside.unruled.items()
        if name != PART
    }
    parts: dict[int, Application] = {}
    irregular: list[Irregular] = []
    sorted_ = False
    for leaf in role.program.leaves:
        if shapes[leaf.shape].name != PART:
            continue
        at = [placed[place].leaf(leaf.number)[0] for place in range(len(runs))]
        inside = [(one, marks[here].tolist()) for one, marks, here in zip(whole, marked, at, strict=True) if here.size]
        if not inside:
            continue
        # Of loops that run as often as it happens, all runs are compared in as many turns.
        often = any(role.counts[loop].law is not None for loop in leaf.loops)
        fewest = min(len(marks) for _, marks in inside) if often else None
        found = _part([one.together(marks[:fewest]) for one, marks in inside], timed)
        sorted_ |= found.in_order
        own = whole_of([NumberedRun(one.together(marks), {}, set()) for one, marks in inside])
        for name, share in found.unruled.items():
            add(unruled, name, share * own[0], found.times[name] * own[1])
        if not {*found.unruled} <= {*AMOUNTS} and (not found.partners or found.ruled == 0.0):
            before, after = places[tags[leaf.shape]]
            calls = sorted(name for name in found.unruled)
            turns = sum(here.size * run.count for here, run in zip(at, runs, strict=True))
            events, time = ((own - [turns, 0.0]) / everything).tolist()
            irregular.append(Irregular(f"between {before} and {after}", tuple(calls), events, time))
        parts[leaf.number] = found.application
    shares = {name: each / everything for name, each in sorted(unruled.items())}
    left = max(1.0 - float(sum(each[0] for each in shares.values())), 0.0)
    return Fit(replace(outside.application, parts=parts), left, *shares_by_name(shares), tuple(irregular), sorted_)


def _best(
    runs: Sequence[NumberedRun],
    shapes: Sequence[Shape],
    timed: bool,
    part: bool = False,
    whole: Completed | None = None,
    completion: Callable[[], Fit | None] = lambda: None,
    roles: Sequence[tuple[str, str]] = (),
    ends: BothEnds | None = None,
    calls_only: bool = False,
) -> Fit | None:
    """The rules of the roles that explain the most; None if no roles fit.

    Parameters
    ----------
    part : whether roles that only larger runs would show are refused.
    whole : the runs, where they were completed by null communications.
    completion : of the runs, which is believed where partners follow no rule in the simplest roles.
    roles : features and grids that are tried; all where there are none.
    ends : which messages of the roles so far have in larger runs; they are given up where one has one end only.
    calls_only : whether computations are left out.
    """
    counts = [run.count for run in runs]
    topologies = different(counts)
    best: Fit | None = None
    tried = 0

    def score(found: Fit) -> float:
        """The share of what follows rules; measured times follow the better the more roles they are divided among."""
        return found.calls_ruled if timed else found.ruled

    tree = _tree(runs, shapes, topologies, timed) if whole is None and not roles else None
    if tree is not None and score(tree) == 1.0:
        return tree
    for features, topology in roles or (candidates(topologies) if whole is None else [(whole.features, "line")]):
        seen = ranks_seen(runs, features, topology)
        # Where nearly each process has a role of its own, nothing is explained: any calls would have such rules.
        if seen is None or sum(len(runs) - 1 in of for of in seen.values()) > max(MOST_ROLES * counts[-1], 1):
            continue
        # Neither is it where so few runs show each role that no rule in n can be checked on them.
        if max(map(len, seen.values())) < min(FEWEST, len(runs)):
            continue
        if part and not _reaches(features, topology, _larger(counts, topology), {*seen}):
            continue
        patience, believed = 0 if part else MOST_FAILED, FOLDED if features == "folded" else ()
        rules = RuleSearch(
            runs, shapes, topology, topologies, timed, patience=patience, believed=believed, completed=whole,
            strict=bool(roles), calls_only=calls_only,
        )  # fmt: skip
        search = RoleSearch(rules, features, ends)
        try:
            found = search.fit(seen, score(best) if best is not None else -np.inf)
        except GivenUpError:
            found = None
            tried += MOST_TRIED // 2
        if found is not None and (best is None or score(found) > score(best)):
            best = found
        tried += 1
        if (best is None or not best.partners) and (otherwise := completion()) is not None:
            return otherwise
        # Whose calls follow from the sides of a grid has no other roles by its borders.
        last = search.along or (found is not None and best is not None and (score(best) == 1.0 or not rules.divided))
        if last or tried >= MOST_TRIED:
            break
    return best if tried else completion()


def _tree(runs: Sequence[NumberedRun], shapes: Sequence[Shape], topologies: Sequence[str], timed: bool) -> Fit | None:
    """The rules of processes that form a binomial tree, of the first and of all others; None where they form none."""
    for tree in TREES:
        if (apart := by_children(runs, tree)) is None:
            continue
        several, seen = apart
        rules = RuleSearch(several, shapes, "line", topologies, timed, in_tree=True)
        try:
            found = RoleSearch(rules, "begins").fit(seen)
        except GivenUpError:
            continue
        if found is not None:
            return found
    return None


def _checked(found: Fit, runs: Sequence[NumberedRun]) -> Fit:
    """What was found, with the actions counted as without rule that it does not give back where it was learned."""
    wrong: dict[str, Floats] = {}
    for run in runs:
        try:
            made = expanded(found.application, run.count)
        except InputError:
            return Fit(found.application, 0.0, {"all": 1.0}, {"all": 1.0})
        given_back = cache(partial(_given_back, made, run.trace))
        for mine, theirs in zip(made.processes, run.trace.processes, strict=True):
            if mine.size != theirs.size:
                for action, many in zip(*np.unique(theirs, return_counts=True), strict=True):
                    name = run.trace.table.shapes[run.trace.table.shape[action]].name
                    add(wrong, name, int(many), int(many) * run.seconds[action])
                continue
            # Both numbers as one are sorted many times faster than pairs are.
            known = len(run.trace.table.shape)
            pairs, times = np.unique(mine.astype(np.int64) * known + theirs, return_counts=True)
            for one, other, many in zip(*(each.tolist() for each in (*np.divmod(pairs, known), times)), strict=True):
                if not given_back(one, other):
                    name = run.trace.table.shapes[run.trace.table.shape[other]].name
                    add(wrong, name, many, many * run.seconds[other])
    whole = whole_of(runs)
    unruled = {
        name: np.maximum((found.unruled.get(name, 0.0), found.times.get(name, 0.0)), wrong.get(name, 0.0) / whole)
        for name in sorted({*found.unruled, *wrong})
    }
    left = max(1.0 - float(sum(each[0] for each in unruled.values())), 0.0)
    return _received_as_sent(Fit(found.application, left, *shares_by_name(unruled)), runs)


def _received_as_sent(found: Fit, runs: Sequence[NumberedRun]) -> Fit:
    """What was found, without rules of received bytes by which larger runs receive others than are sent.

    Few runs have some rule by chance. Bytes that follow no rule are received as they are sent. What the runs leave open
    is said instead.
    """
    each = found.application

    def differ(actions: Collection[tuple[Cell, int]], counts: Sequence[int]) -> bool:
        other = without(each, actions)
        try:
            return any([*lines(expanded(each, n))] != [*lines(expanded(other, n))] for n in counts)
        except InputError:  # no rules hold there
            return False

    ruled = by_rules(each)
    larger = [
        n
        for n in (possible_counts(each, _like_larger(each.learned, each.topology)) if ruled else ())
        if _reaches(each.features, each.topology, [n], {*each.roles})
        and differ(ruled, [n])
        and not open_choices(each, [n])
    ]
    others = [one for one in ruled if differ([one], larger) and not differ([one], each.learned)] if larger else []
    if not others:
        return found
    whole = whole_of(runs)
    unruled = {name: np.array([share, found.times[name]]) for name, share in found.unruled.items()}
    for run in runs:
        for rank, cell in enumerate(cells(each.features, each.topology, run.count)):
            for leaf in (number for of, number in others if of == cell):
                at = positions(each, each.roles[cell], rank, run.count)[0].leaf(leaf)[0]
                # Of calls whose partner does not exist there are fewer.
                at = at[at < run.trace.processes[rank].size]
                name = each.shapes[each.roles[cell].program.leaves[leaf].shape].name
                seconds = float(run.seconds[run.trace.processes[rank][at]].sum())
                add(unruled, name, at.size / whole[0], seconds / whole[1])
    left = max(1.0 - float(sum(share[0] for share in unruled.values())), 0.0)
    return Fit(without(each, others), left, *shares_by_name(unruled))


def _given_back(made: Trace, true: Trace, one: int, other: int) -> bool:
    """Whether an action equals the true one; amounts need only be as similar as in an instruction group."""
    if true.table.shapes[true.table.shape[other]].name not in AMOUNTS:
        return made.table.text(one) == true.table.text(other)
    found, wanted = ((each.table.numbers[action] or (0.0,))[0] for each, action in ((made, one), (true, other)))
    return min(found, wanted) >= ALIKE * max(found, wanted)


def _same_program(traces: Sequence[Trace], timed: bool) -> None:
    """Refuse traces of different programs, some of whose actions others lack, or of different workloads."""
    names = [_names(trace) for trace in traces]
    for trace, has in zip(traces[1:], names[1:], strict=True):
        if odd := sorted(has ^ names[0]):
            have, not_have = (trace, traces[0]) if odd[0] in has else (traces[0], trace)
            raise InputError(
                f"the run of {len(have.processes)} processes calls {odd[0]} and that of {len(not_have.processes)} "
                "never does, expected signatures of one program"
            )
    totals = {len(trace.processes): trace.instructions for trace in traces}
    if not timed and not one_workload(totals):
        listed = ", ".join(f"{total:g} with {n}" for n, total in totals.items())
        raise InputError(
            f"the instructions of all processes together are {listed} processes, expected runs with one workload, "
            "whose total stays or drifts without a jump"
        )


def _names(trace: Trace) -> set[str]:
    """The names of all that is done in a trace."""
    done = np.unique(np.concatenate([np.zeros(0, dtype=np.int32), *map(np.unique, trace.processes)]))
    return {trace.table.shapes[trace.table.shape[action]].name for action in done.tolist()}


def _part(traces: Sequence[Trace], timed: bool) -> Fit:
    """The rules of a part as it is, or with messages in order, where all have both ends; else its statistics."""
    if len(traces) >= FEWEST:
        sorted_ = [in_order(trace) for trace in traces]
        if (found := _sound_part(traces, timed)) is not None:
            return found
        moved = any(not np.array_equal(*each) for one, other in zip(traces, sorted_, strict=True)
                    for each in zip(one.processes, other.processes, strict=True))  # fmt: skip
        if moved and (found := _sound_part(sorted_, timed)) is not None:
            return replace(found, in_order=True)
    whole = np.zeros(2)
    unruled: dict[str, Floats] = {}
    for trace in traces:
        run = NumberedRun(trace, {}, set())
        for actions in trace.processes:
            for action, times in zip(*np.unique(actions, return_counts=True), strict=True):
                name = trace.table.shapes[trace.table.shape[action]].name
                if name != TURN:
                    add(unruled, name, float(times), float(times * run.seconds[action]))
        whole += whole_of([run])
    shares = {name: each / np.maximum(whole, 1e-30) for name, each in sorted(unruled.items())}
    return Fit(statistical(traces), 0.0, *shares_by_name(shares))


def _sound_part(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of a part, whose messages have both ends where it was learned and beyond; None where there are none."""
    completion = cache(partial(_completed, traces, timed))
    found = _whole(traces, timed, completion, part=True) or completion()
    if found is None or not found.partners:
        found = _from_another(traces, timed, part=True)
    if found is None or not found.partners or found.ruled == 0.0:
        return None
    counts = [len(trace.processes) for trace in traces]
    try:
        for count in (*counts, *_larger(counts, found.application.topology)):
            expanded(found.application, count).checked()
    except InputError:
        return None
    return found


def _larger(counts: Sequence[int], topology: str) -> list[int]:
    """Larger numbers of processes that are a grid, for which what was learned should hold at least."""
    largest = max(counts)
    larger = [2 * largest, 4 * largest]
    if all(math.isqrt(n) ** 2 == n for n in counts):
        larger += [(math.isqrt(largest) + more) ** 2 for more in (1, 2, 4)]
    return [n for n in larger if TOPOLOGIES[topology](n)]


def _believed(found: Fit) -> bool:
    """Whether rules of whole programs may be taken for those of larger runs.

    Where hardly any processes share a role, some rules hold of whatever they do: then every call has to follow them.
    """
    every = found.calls_ruled == 1.0 or _explains(found)
    return found.partners and every and _grows(found) and _holds(found)


def _grows(found: Fit) -> bool:
    """Whether all follows rules, or larger runs have no roles but those that were seen."""
    each = found.application
    larger = _larger(each.learned, each.topology)
    return found.ruled == 1.0 or _reaches(each.features, each.topology, larger, {*each.roles})


def _holds(found: Fit) -> bool:
    """Whether messages have both ends in larger runs of the kind that all runs were of, as far as roles are known.

    Rules that the runs did not determine give messages there of which only one end exists. Roles that only larger runs
    have are another matter, unless so few processes share a role that they explain nothing.
    """
    each = found.application
    for count in possible_counts(each, _like_larger(each.learned, each.topology)):
        if _reaches(each.features, each.topology, [count], {*each.roles}):
            try:
                sound(each, count)
            except InputError:
                return False
        elif not _explains(found):
            return False
    return True


def _like_larger(counts: Sequence[int], topology: str) -> list[int]:
    """Larger numbers of processes of the kind that all runs were of."""
    return alike_counts(counts, dict.fromkeys([*_larger(counts, topology), *_as_far_apart(counts, topology)]))


def _explains(found: Fit) -> bool:
    """Whether roles explain more than single processes."""
    return _shared(len(found.application.roles), found.application.learned)


def _shared(roles: int, counts: Sequence[int]) -> bool:
    """Whether processes of the largest run share roles; where hardly any do, any calls would have such rules."""
    return MOST_ROLES_OF * roles <= max(counts)


def _as_far_apart(counts: Sequence[int], topology: str) -> list[int]:
    """About twice and four times the largest count, as far from it as counts are from each other, or that many times.

    Programs that were only run on odd numbers of processes may have other rules on even ones.
    """
    largest = max(counts)
    apart = math.gcd(*(largest - count for count in counts))
    found = [largest + apart * -(-more * largest // apart) for more in (1, 3)]
    return [n for n in found if TOPOLOGIES[topology](n)]


def _reaches(features: str, topology: str, larger: Sequence[int], seen: set[Cell]) -> bool:
    """Whether larger runs have no roles but those that were seen."""
    return all(seen.issuperset(different_cells(features, topology, n)) for n in larger)
