"""Measurements of application blocks: the settings of each, and its execution time or power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Floats


@dataclass(frozen=True)
class Measurements:
    """Measurements of one block, as arrays of shape (n,); a column that the block does not depend on is ones or zeros.

    Parameters
    ----------
    value : seconds or watts; of computation, seconds for each instruction.
    data_size : bytes.
    nodes, threads : at least 1.
    """

    value: Floats
    data_size: Floats
    nodes: Floats
    threads: Floats

    def __len__(self) -> int:
        return len(self.value)

    @property
    def weights(self) -> Floats:
        """Weights for relative errors, shape (n,): timing noise grows with the time measured."""
        return 1.0 / self.value

    def medians(self) -> Measurements:
        """One measurement for each point: the median of its repetitions."""
        points = np.column_stack([self.data_size, self.nodes, self.threads])
        distinct, which = np.unique(points, axis=0, return_inverse=True)
        value = np.array([np.median(self.value[which.ravel() == each]) for each in range(len(distinct))])
        return Measurements(value, *distinct.T)

    def part(self, chosen: Flags) -> Measurements:
        """The chosen measurements, by a mask of shape (n,)."""
        return Measurements(self.value[chosen], self.data_size[chosen], self.nodes[chosen], self.threads[chosen])


@dataclass(frozen=True)
class Quality:
    """How well a fit describes its measurements.

    Parameters
    ----------
    r_squared : Pearson's coefficient squared, as Table 2 has it.
    mean_percentage_error, root_mean_squared_error : the two measures of section 4 (%; s or W).
    """

    r_squared: float
    mean_percentage_error: float
    root_mean_squared_error: float

    @classmethod
    def of(cls, value: Floats, fitted: Floats) -> Quality:
        """Judge fitted against measured values; arrays of shape (n,).

        >>> found = Quality.of(np.array([1.0, 2.0, 4.0]), np.array([1.1, 2.2, 4.4]))
        >>> round(found.r_squared, 6), round(found.mean_percentage_error, 6), round(found.root_mean_squared_error, 3)
        (1.0, 10.0, 0.265)
        """
        error = fitted - value
        spread = float(np.std(value) * np.std(fitted))
        covariance = float(np.mean((value - value.mean()) * (fitted - fitted.mean())))
        return cls(
            (covariance / spread) ** 2 if spread > 0 else 0.0,
            float(100 * np.mean(np.abs(error) / value)),
            float(np.sqrt(np.mean(error**2))),
        )
