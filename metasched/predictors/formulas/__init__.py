"""Predictors that are formulas of Eq. (1): the sorted list, the trend, and the published method."""
