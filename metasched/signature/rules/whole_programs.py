"""The rules of whole programs: roles that explain the most, completion by null communications, other origins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE
from metasched.signature.equations.topologies import TOPOLOGIES, different, dimensions_of
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import FOLDED
from metasched.signature.rules.both_ends import BothEnds
from metasched.signature.rules.completion import Completed, Incomplete, completed, related
from metasched.signature.rules.expanding import expanded, lines, positions
from metasched.signature.rules.fits import Fit, add, shares_by_name
from metasched.signature.rules.larger_runs import explains, grows, holds, larger_counts, like_larger, reaches, shared
from metasched.signature.rules.members import members_of
from metasched.signature.rules.numbered_runs import NumberedRun, by_children, ranks_seen, tagged_shapes, whole_of
from metasched.signature.rules.open_choices import open_choices
from metasched.signature.rules.origins import origins
from metasched.signature.rules.received_bytes import by_rules, received_as_sent, sends_without_rule, without
from metasched.signature.rules.reporting import possible_counts
from metasched.signature.rules.role_search import RoleSearch
from metasched.signature.rules.roles import TREES, Cell, candidates, different_cells
from metasched.signature.rules.rule_search import GivenUpError, RuleSearch, UndecidedError
from metasched.signature.traces.actions import AMOUNTS, Shape
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.turning import counted_from

#: How many ways to see the roles are tried out, of those that the order of calls allows.
MOST_TRIED = 8
#: Partners without a rule up to which roles are believed.
MOST_FAILED = 4
#: How many roles there may be at most for each process of the largest run.
MOST_ROLES = 0.75
#: Roles whose programs are completed each by itself, simplest first.
COMPLETED = ("", "begins", "borders")
#: Fewest different counts that a rule in n can be checked on.
FEWEST = 3


def whole_program(
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
        # Where each shape has but one tag, the actions are numbered as they were with tags.
        if len({shape for shape, _ in numbered}) == len(numbered):
            break
    return None


def other_roles(traces: Sequence[Trace], timed: bool) -> Fit | None:
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
        if not shared(len(seen), counts) or not reaches(features, topology, larger_counts(counts, topology), seen):
            continue
        larger = [n for n in like_larger(counts, topology) if reaches(features, topology, [n], seen)]
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
        if found is None or not found.partners or found.calls_ruled < 1.0 or not holds(found):
            continue
        found = _checked(found, runs)
        if found.calls_ruled == 1.0:
            if agreed is not None and not _agree(agreed.application, found.application):
                return None
            agreed = agreed or found
    return agreed


def completed_program(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of programs that make the calls whose partner exists; None where some call follows no rule.

    They hold where all of a process's calls are known, and where messages have both ends in larger runs.
    """
    incomplete, runs = Incomplete(traces), [NumberedRun(trace, {}, set()) for trace in traces]
    # Sides of the same length in all runs are no sides of three that happen to be as long.
    topologies = sorted(different([run.count for run in runs]), key=dimensions_of)
    ways = ((way, features) for way in related(incomplete, topologies) for features in COMPLETED)
    for relations, features in ways:
        whole = completed(incomplete, features, relations)
        if whole is None:
            continue
        found = _best(whole.runs, whole.shapes, timed, whole=whole)
        if found is None:
            continue
        found = _checked(found, runs)
        if found.partners and found.calls_ruled == 1.0 and grows(found) and holds(found):
            return found
    return None


def from_another(traces: Sequence[Trace], timed: bool, part: bool = False) -> Fit | None:
    """The rules of ranks that are counted from another process than 0; None where some call follows no rule."""
    for origin in origins(traces):
        turned = [counted_from(trace, origin.at(len(trace.processes))) for trace in traces]
        completion = cache(partial(completed_program, turned, timed))
        found = whole_program(turned, timed, completion, part)
        if found is None or not (found.partners and found.calls_ruled == 1.0 and grows(found) and holds(found)):
            found = completion()
        if found is not None:
            return replace(found, application=replace(found.application, origin=origin))
    return None


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
    completion : of the runs, which is believed where the simplest roles leave partners without a rule, or explain
        hardly more than single processes.
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
        if part and not reaches(features, topology, larger_counts(counts, topology), {*seen}):
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
        # Of as many roles that they explain hardly more than single processes, one program is believed before them.
        explained = best is not None and best.partners and explains(best)
        if not explained and (otherwise := completion()) is not None:
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

    Few runs have some rule by chance, of bytes that follow none where they are sent as well. Bytes that follow no rule
    are received as they are sent. What the runs leave open is said instead, but no choice makes bytes equal to others
    that follow no rule.
    """
    each, members = found.application, members_of(found.application)

    def of_runs(cell: Cell, leaf: int) -> list[tuple[NumberedRun, Ints]]:
        """The actions of a call, of one process of a run after another."""
        made = []
        for run in runs:
            for rank in members[cell].get(run.count, ()):
                process = run.trace.processes[rank]
                at = positions(each, each.roles[cell], rank, run.count)[0].leaf(leaf)[0]
                # Of calls whose partner does not exist there are fewer.
                made.append((run, process[at[at < process.size]].astype(np.int64)))
        return made

    def differ(actions: Collection[tuple[Cell, int]], counts: Sequence[int]) -> bool:
        other = without(each, actions)
        try:
            return any([*lines(expanded(each, n))] != [*lines(expanded(other, n))] for n in counts)
        except InputError:  # no rules hold there
            return False

    ruled, unsaid = by_rules(each), sends_without_rule(each)
    larger = [
        n
        for n in (possible_counts(each, like_larger(each.learned, each.topology)) if ruled else ())
        if reaches(each.features, each.topology, [n], {*each.roles})
        and differ(ruled, [n])
        and (unsaid or not open_choices(each, [n], numbers=False))
    ]
    others = {one: of_runs(*one) for one in ruled if differ([one], larger)} if larger else {}
    others = {one: made for one, made in others.items() if _as_sent(made)}
    if not others:
        return found
    whole = whole_of(runs)
    unruled = {name: np.array([share, found.times[name]]) for name, share in found.unruled.items()}
    for (cell, leaf), made in others.items():
        name = each.shapes[each.roles[cell].program.leaves[leaf].shape].name
        for run, actions in made:
            add(unruled, name, actions.size / whole[0], float(run.seconds[actions].sum()) / whole[1])
    left = max(1.0 - float(sum(share[0] for share in unruled.values())), 0.0)
    return Fit(without(each, others), left, *shares_by_name(unruled))


def _as_sent(made: Sequence[tuple[NumberedRun, Ints]]) -> bool:
    """Whether what some actions receive is what was sent to them."""
    by_run: dict[int, list[Ints]] = {}
    for run, actions in made:
        by_run.setdefault(run.count, []).append(actions)
    traces = {run.count: run.trace for run, _ in made}
    return all(received_as_sent(traces[n], np.unique(np.concatenate(each))) for n, each in by_run.items())


def _given_back(made: Trace, true: Trace, one: int, other: int) -> bool:
    """Whether an action equals the true one; amounts need only be as similar as in an instruction group."""
    if true.table.shapes[true.table.shape[other]].name not in AMOUNTS:
        return made.table.text(one) == true.table.text(other)
    found, wanted = ((each.table.numbers[action] or (0.0,))[0] for each, action in ((made, one), (true, other)))
    return min(found, wanted) >= ALIKE * max(found, wanted)


def _agree(one: Application, other: Application) -> bool:
    """Whether two explanations of the same runs say the same of larger ones."""
    counts = [*possible_counts(one, possible_counts(other, like_larger(one.learned, one.topology)))]
    made = [[expanded(each, count) for count in counts] for each in (one, other)]
    return bool(counts) and all(
        process == wanted
        for mine, theirs in zip(*made, strict=True)
        for process, wanted in zip(lines(mine), lines(theirs), strict=True)
    )
