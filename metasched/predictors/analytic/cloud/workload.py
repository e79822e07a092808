"""Workload laws: an application's profile as a function of the number of processes, fitted to three or more runs.

The paper's laws are m(n) = m_a / n + m_b and s(n) = C ln n + D, and the published network uses no other. For the
refined network another of the short list below is taken where the profiles follow it better, since an all-to-all or a
grid follows neither of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.cloud.locality import Locality, exponent_of, neighbours
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.records import InputError

#: Fewest profiled runs, as in the paper's "more than two times".
FEWEST_PROFILES = 3
#: Processes up to which a law must stay positive.
_FAR = 100_000

FORMS: dict[str, Callable[[Floats], Floats]] = {
    "ln n": np.log,
    "1/n": lambda n: 1.0 / n,
    "1/n^2": lambda n: n**-2.0,
    "1/sqrt n": lambda n: n**-0.5,
    "sqrt n": np.sqrt,
    "n": lambda n: n,
}


@dataclass(frozen=True, slots=True)
class Law:
    """A quantity as a function of n: slope times a form of n, plus a constant.

    >>> Law("1/n", 100.0, 5.0)([10, 20])
    array([15., 10.])
    """

    form: str
    slope: float
    constant: float

    def __call__(self, processes: ArrayLike) -> Floats:
        """The quantity (messages, or bytes) at numbers of processes of any shape."""
        return np.asarray(self.slope * FORMS[self.form](np.asarray(processes, dtype=float)) + self.constant)

    def __str__(self) -> str:
        """The formula, as ``metasched scale`` prints it."""
        if not self.slope:
            return f"{self.constant:.4g}"
        return f"{self.slope:.4g} {self.form}" + (f" {self.constant:+.4g}" if self.constant else "")


@dataclass(frozen=True, slots=True)
class GridLaw:
    """Messages of a process that sends to its neighbours in a grid: the same number to each of its neighbours.

    A law in n alone cannot tell that two processes have fewer neighbours than eight, and that 64 have no more.

    Parameters
    ----------
    dimensions : of the grid.
    each : messages to one neighbour as a function of n.

    Examples
    --------
    >>> GridLaw(2, Law("ln n", 0.0, 40.0))([2, 8, 64])
    array([ 80., 160., 160.])
    """

    dimensions: int
    each: Law

    def __call__(self, processes: ArrayLike) -> Floats:
        """The quantity (messages, or bytes) at numbers of processes of any shape."""
        counts = np.asarray(processes, dtype=float)
        known = [neighbours(max(round(float(n)), 2), self.dimensions) for n in counts.ravel()]
        return np.asarray(np.reshape(known, counts.shape) * self.each(counts))

    def __str__(self) -> str:
        """The formula, as ``metasched scale`` prints it."""
        return f"({self.each}) for each neighbour in {self.dimensions} dimensions"


def fit_law(processes: ArrayLike, values: ArrayLike, forms: Sequence[str]) -> Law:
    """Relative least squares for each form; the first of the best, among those that stay positive.

    Parameters
    ----------
    processes, values : arrays of shape (profiles,), values above 0.
    forms : names in :data:`FORMS`, in the order of preference.

    Examples
    --------
    >>> str(fit_law([2, 4, 8], [750.0, 187.5, 46.875], ["1/n", "1/n^2"]))
    '3000 1/n^2'
    """
    n, value = np.asarray(processes, dtype=float), np.asarray(values, dtype=float)
    ends = np.array([n.min(), _FAR])  # Every form is monotone, so a law that is positive here is so in between.
    found: list[tuple[float, Law]] = []
    for form in forms:
        columns = np.stack([FORMS[form](n), np.ones_like(n)], axis=1)
        (slope, constant), *_ = np.linalg.lstsq(columns / value[:, None], np.ones_like(n), rcond=None)
        # What rounding leaves of a coefficient that is 0 must not decide over the sign far away.
        slope, constant = (0.0 if abs(c) < 1e-9 * np.abs(value).max() else float(c) for c in (slope, constant))
        law = Law(form, slope, constant)
        error = round(float(np.sqrt(np.mean((law(n) / value - 1.0) ** 2))), 4)
        if np.all(law(ends) > 0):
            found.append((error, law))
    if not found:
        return Law(forms[0], 0.0, float(np.exp(np.log(value).mean())))
    return min(found, key=lambda entry: entry[0])[1]


@dataclass(frozen=True)
class Workload:
    """The laws of an application, fitted to its profiles.

    Parameters
    ----------
    message_size : m(n), bytes.
    sends : s(n), messages of a process over the run.
    exchanges : how often a process waits for messages over the run.
    waiting_share : V_comm, share of a job's cycle that goes into communication on one server, mean of the profiles.
    locality : which ranks communicate.
    """

    message_size: Law
    sends: Law | GridLaw
    exchanges: Law
    waiting_share: float
    locality: Locality

    @classmethod
    def of(cls, profiles: Sequence[Profile]) -> Workload:
        """Fit the refined network's laws.

        Raises
        ------
        InputError : with fewer than three profiles, or fewer than three numbers of processes.
        """
        counts = _counts(profiles)
        sends = np.array([profile.sends for profile in profiles])
        exchanges = np.array([profile.exchanges or profile.sends for profile in profiles])
        locality = _locality(profiles)
        growing = ("ln n", "1/n", "1/n^2", "sqrt n", "n")
        return cls(
            message_size=fit_law(
                counts, [profile.message_size for profile in profiles], ("1/n", "1/n^2", "1/sqrt n", "ln n")
            ),
            sends=_sends(counts, sends, locality, growing),
            exchanges=fit_law(counts, exchanges, growing),
            waiting_share=_waiting_share(profiles),
            locality=locality,
        )

    @classmethod
    def published(cls, profiles: Sequence[Profile]) -> Workload:
        """The paper's two laws by ordinary least squares, partners spread evenly as in (11) and (12).

        Raises
        ------
        InputError : as :meth:`of` does.

        Examples
        --------
        >>> workload = Workload.published([Profile(n, 10.0, 800.0 / n + 5.0, 1.0, 4.0) for n in (2, 4, 8)])
        >>> str(workload.message_size), workload.waiting_share
        ('800 1/n +5', 0.25)
        """
        counts = _counts(profiles)
        message_size = _ordinary("1/n", counts, [profile.message_size for profile in profiles])
        sends = _ordinary("ln n", counts, [profile.sends for profile in profiles])
        return cls(message_size, sends, sends, _waiting_share(profiles), Locality())


def _counts(profiles: Sequence[Profile]) -> Ints:
    """Processes of each profile, shape (profiles,); refused where they are too few to fit a law to."""
    counts = np.array([profile.processes for profile in profiles])
    if len(profiles) < FEWEST_PROFILES:
        raise InputError(f"{len(profiles)} profiles, expected at least {FEWEST_PROFILES}")
    if np.unique(counts).size < FEWEST_PROFILES:
        raise InputError(
            f"profiles with {np.unique(counts).size} different numbers of processes, "
            f"expected at least {FEWEST_PROFILES}"
        )
    return counts


def _waiting_share(profiles: Sequence[Profile]) -> float:
    """V_comm = T_oh / Job_Cycle_time = MPI_Wait / T_exe, mean over the profiles."""
    return float(np.mean([profile.waiting_time / profile.execution_time for profile in profiles]))


def _ordinary(form: str, counts: Ints, values: Sequence[float]) -> Law:
    slope, constant = np.polyfit(FORMS[form](counts.astype(float)), values, 1)
    return Law(form, float(slope), float(constant))


def _sends(counts: Ints, sends: Floats, locality: Locality, forms: Sequence[str]) -> Law | GridLaw:
    if locality.dimensions is None:
        return fit_law(counts, sends, forms)
    known = [neighbours(int(n), locality.dimensions) for n in counts]
    return GridLaw(locality.dimensions, fit_law(counts, sends / np.array(known), forms))


def _locality(profiles: Sequence[Profile]) -> Locality:
    """The grid that the profiles name, or the mean exponent of those that tell: up to n = 3 all distances are 1."""
    dimensions = {profile.dimensions for profile in profiles}
    if len(dimensions) > 1:
        raise InputError("profiles that differ in dimensions, expected the same in all")
    exponents = [
        exponent_of(profile.mean_distance, profile.processes)
        for profile in profiles
        if profile.mean_distance is not None and profile.processes > 3
    ]
    return Locality(float(np.mean(exponents)) if exponents else 0.0, dimensions.pop())
