"""Inputs brought to a common scale, and an input that hardly varied kept from mattering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.predictors.contract import Floats

#: Least deviation of a logarithm that counts: inputs that varied by less than a tenth said nothing of their effect.
LEAST_DEVIATION = 0.1


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of each input.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[0.0, 5.0], [2.0, 5.001]]))
    >>> scaling(np.array([[3.0, 5.1]])).round(1)
    array([[2., 1.]])
    """

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, points: Floats) -> Scaling:
        """Scale points of shape (n, d), all logarithms, to mean 0 and deviation 1, or less for what hardly varied."""
        return cls(points.mean(axis=0), np.maximum(points.std(axis=0), LEAST_DEVIATION))

    def __call__(self, points: Floats) -> Floats:
        """The points, scaled."""
        return (points - self.centre) / self.scale
