"""Forecasts of the mean loads over a run, of single nodes and of sets of nodes."""
