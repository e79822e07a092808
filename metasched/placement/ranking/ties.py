"""The order of placements with equal scores: always the same, or shuffled by a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from metasched.placement.ranking.candidates import Candidate


def settle_ties(candidates: Sequence[Candidate], tolerance: float, rotation: str | None) -> list[Candidate]:
    """Order near-ties independently of the order in which they were found.

    Parameters
    ----------
    candidates : ascending in score.
    tolerance : candidates whose scores differ by no more than this share of the better one are near-ties.
    rotation : None for fewest processors first, then by name; otherwise any word, and each word shuffles them
        differently, the same word always the same way.
    """
    settled: list[Candidate] = []
    left = list(candidates)
    while left:
        limit = left[0].score * (1.0 + tolerance)
        tied = [candidate for candidate in left if candidate.score <= limit]
        settled += sorted(tied, key=lambda candidate: _key(candidate, rotation))
        left = left[len(tied) :]
    return settled


def _key(candidate: Candidate, rotation: str | None) -> tuple[object, ...]:
    chosen = candidate.placement.resource_set
    if rotation is None:
        return (chosen.processors, chosen.cluster, sorted(chosen.nodes))
    words = "/".join([rotation, chosen.cluster, *sorted(chosen.nodes), str(chosen.processors)])
    return (hashlib.blake2b(words.encode(), digest_size=8).digest(),)
