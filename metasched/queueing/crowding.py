"""What a job meets at a station whose speed depends on its load, when only the mean number found there is known.

Approximate mean value analysis knows the mean queue that an arriving job finds, but the residence time at such a
station depends on the whole distribution. Here the distribution is that of the machine-repair model (the other jobs
each come to the station at one rate, whatever it is) with the mean that was found. It is exact when the jobs' time
elsewhere is a delay, and when the station's speed is fixed or proportional to its load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from metasched.arrays import Floats

#: Loads at which the distribution is computed, and intervals of the table that is made of them.
_LOADS, _INTERVALS = 400, 1024


@dataclass(frozen=True, slots=True)
class Crowding:
    """Residence over demand at one load-dependent station, as a table over the mean number found.

    The table has equal steps of ``found / (found + scale)``, so that a look-up needs no search.

    Parameters
    ----------
    excess, slope : arrays of shape (intervals,), residence over demand less ``(1 + found) / full_rate`` at the start of
        each interval, and its growth over the interval.
    scale : mean number found that lies in the middle of the table.
    full_rate : speed with many jobs, relative to that with one.

    Examples
    --------
    A job that finds nobody at a station with 2 servers is served at once; one that finds nearly all 9 others waits.

    >>> crowding = Crowding.of((1.0, 2.0), others=9)
    >>> crowding.stretch(np.array([0.0, 8.9])).round(3)
    array([1.  , 4.95])
    """

    excess: Floats
    slope: Floats
    scale: float
    full_rate: float

    @classmethod
    def of(cls, rates: tuple[float, ...], others: int) -> Crowding:
        """Tabulate a station with the given ``rates`` (the last one stays) visited by ``others`` further jobs.

        Parameters
        ----------
        rates : speed of the station with 1, 2, ... jobs there, relative to its service time; all above 0.
        others : how many jobs there are beside the one that arrives.
        """
        speeds = np.asarray(rates[: others + 1], dtype=float)
        full = float(speeds[-1])
        # sum_j p(j) (j + 1) / alpha(j + 1) = (1 + mean) / full + sum_j p(j) (j + 1) (1 / alpha(j + 1) - 1 / full)
        gain = np.arange(1, speeds.size + 1) * (1 / speeds - 1 / full)
        if others < 1:
            return cls(np.full(_INTERVALS, gain[0]), np.zeros(_INTERVALS), 1.0, full)
        # Below saturation the number found stays within some deviations, sqrt(others) wide at most, of the servers.
        reach = min(others, speeds.size + 60 + int(12 * np.sqrt(others)))
        heaviest = 1e7 if reach == others else 1 + 6 / np.sqrt(others)
        loads = np.geomspace(1e-7 * speeds[0] / full, heaviest, _LOADS)
        number = np.arange(reach + 1)
        climbs = np.concatenate([speeds, np.full(max(reach - speeds.size, 0), full)])[:reach]
        # p(j) = p(0) (n! / (n - j)!) (x / alpha(1)) ... (x / alpha(j)), x = load * full / n
        fixed = (
            scipy.special.gammaln(others + 1)
            - scipy.special.gammaln(others - number + 1)
            - np.concatenate([[0.0], np.cumsum(np.log(climbs))])
        )
        logs = fixed + np.log(loads * full / others)[:, None] * number
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        excess = weights[:, : gain.size] @ gain[: reach + 1]
        found, excess = np.append(0.0, weights @ number), np.append(gain[0], excess)

        scale = float(speeds.size)
        share = np.arange(_INTERVALS) / _INTERVALS
        table = np.append(np.interp(scale * share / (1 - share), found, excess), excess[-1])
        return cls(table[:-1], np.diff(table), scale, full)

    def stretch(self, found: Floats) -> Floats:
        """Residence over demand for jobs that find ``found`` jobs on average, both of one shape."""
        position = found * (_INTERVALS / (found + self.scale))
        interval = position.astype(np.intp)
        position -= interval
        position *= self.slope.take(interval)
        position += self.excess.take(interval)
        position += (1.0 + found) * (1.0 / self.full_rate)
        return position
