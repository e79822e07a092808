"""What rules say of larger runs: whether their roles are known, and whether messages have both ends there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metasched.records import InputError
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fits import Fit
from metasched.signature.rules.reporting import alike_counts, possible_counts
from metasched.signature.rules.roles import Cell, different_cells

#: Of how many processes of the largest run one role has to explain two, where larger runs ask for roles not seen.
MOST_ROLES_OF = 2


def larger_counts(counts: Sequence[int], topology: str) -> list[int]:
    """Larger numbers of processes that are a grid, for which what was learned should hold at least."""
    largest = max(counts)
    larger = [2 * largest, 4 * largest]
    if all(math.isqrt(n) ** 2 == n for n in counts):
        larger += [(math.isqrt(largest) + more) ** 2 for more in (1, 2, 4)]
    return [n for n in larger if TOPOLOGIES[topology](n)]


def like_larger(counts: Sequence[int], topology: str) -> list[int]:
    """Larger numbers of processes of the kind that all runs were of."""
    return alike_counts(counts, dict.fromkeys([*larger_counts(counts, topology), *_as_far_apart(counts, topology)]))


def _as_far_apart(counts: Sequence[int], topology: str) -> list[int]:
    """About twice and four times the largest count, as far from it as counts are from each other, or that many times.

    Programs that were only run on odd numbers of processes may have other rules on even ones.
    """
    largest = max(counts)
    apart = math.gcd(*(largest - count for count in counts))
    found = [largest + apart * -(-more * largest // apart) for more in (1, 3)]
    return [n for n in found if TOPOLOGIES[topology](n)]


def is_believed(found: Fit) -> bool:
    """Whether rules of whole programs may be taken for those of larger runs.

    Where hardly any processes share a role, some rules hold of whatever they do: then every call has to follow them.
    """
    every = found.calls_ruled == 1.0 or explains(found)
    return found.partners and every and grows(found) and holds(found)


def grows(found: Fit) -> bool:
    """Whether all follows rules, or larger runs have no roles but those that were seen."""
    each = found.application
    larger = larger_counts(each.learned, each.topology)
    return found.ruled == 1.0 or reaches(each.features, each.topology, larger, {*each.roles})


def holds(found: Fit) -> bool:
    """Whether messages have both ends in larger runs of the kind that all runs were of, as far as roles are known.

    Rules that the runs did not determine give messages there of which only one end exists. Roles that only larger runs
    have are another matter, unless so few processes share a role that they explain nothing.
    """
    each = found.application
    for count in possible_counts(each, like_larger(each.learned, each.topology)):
        if reaches(each.features, each.topology, [count], {*each.roles}):
            try:
                sound(each, count)
            except InputError:
                return False
        elif not explains(found):
            return False
    return True


def explains(found: Fit) -> bool:
    """Whether roles explain more than single processes."""
    return shared(len(found.application.roles), found.application.learned)


def shared(roles: int, counts: Sequence[int]) -> bool:
    """Whether processes of the largest run share roles; where hardly any do, any calls would have such rules."""
    return MOST_ROLES_OF * roles <= max(counts)


def reaches(features: str, topology: str, larger: Sequence[int], seen: set[Cell]) -> bool:
    """Whether larger runs have no roles but those that were seen."""
    return all(seen.issuperset(different_cells(features, topology, n)) for n in larger)
