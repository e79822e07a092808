"""One answer of many: their convex combination, learned from what each has missed.

Bernstein online aggregation with the gradients of the absolute error (Wintenberger, "Optimal learning with Bernstein
online aggregation", Machine Learning 106, 2017, Section 2). Nothing in it has to be tuned: how fast an answer is
trusted or given up follows from how large its errors were.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from metasched.history.job_log import Floats


class Aggregation:
    """Combines answers by how well each did, with all jobs and with those of a user: the mean of both.

    Parameters
    ----------
    answers : how many there are.

    Examples
    --------
    >>> combined = Aggregation(3)
    >>> answers = np.array([100.0, 200.0, 900.0])
    >>> combined.mean("ada", answers)
    400.0
    >>> for _ in range(200):
    ...     combined.learn("ada", answers, 200.0)
    >>> 195 < combined.mean("ada", answers) < 205
    True
    """

    def __init__(self, answers: int) -> None:
        self._all = _new(answers)
        self._of_users: dict[Hashable, Floats] = {}

    def mean(self, user: Hashable, answers: Floats) -> float:
        """What follows from some answers to a job of a user; both of the unit that is learned."""
        found = self._of_users.get(user)
        of_all = float(_weights(self._all) @ answers)
        # For somebody of whom nothing is known each answer counts as much as another.
        return 0.5 * (of_all + float(answers.mean() if found is None else _weights(found) @ answers))

    def learn(self, user: Hashable, answers: Floats, truth: float) -> None:
        """Learn what would have been right.

        Parameters
        ----------
        user, answers : whose job, and what was said of it (s), shape (answers,).
        truth : what would have been right (s).
        """
        found = self._of_users.get(user)
        if found is None:
            found = self._of_users[user] = _new(answers.size)
        for state in (self._all, found):
            said = float(_weights(state) @ answers)
            gained = np.sign(said - truth) * (said - answers)
            regret, square, largest = state
            np.maximum(largest, np.abs(gained), out=largest)
            square += gained**2
            regret += gained - _rate(state) * gained**2

    def forget(self, user: Hashable) -> None:
        """Forget what was learned of a user's jobs alone."""
        self._of_users.pop(user, None)


def _new(answers: int) -> Floats:
    """What is kept: gain of each answer, sum of the squares of its gains, and the largest; rows."""
    return np.full((3, answers), [[0.0], [0.0], [1e-9]], dtype=np.float64)


def _rate(state: Floats) -> Floats:
    """How strongly the gain of each answer counts, shape (answers,)."""
    _, square, largest = state
    return np.asarray(np.minimum(0.5 / largest, np.sqrt(np.log1p(square.size) / np.maximum(square, 1e-18))))


def _weights(state: Floats) -> Floats:
    """What each answer counts, shape (answers,), 1 together."""
    rate = _rate(state)
    exponent = rate * state[0]
    counts = rate * np.exp(exponent - exponent.max())
    return np.asarray(counts / counts.sum())
