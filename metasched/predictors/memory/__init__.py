"""The common parts of adaptive predictors: a window of runs, its domain, calibration, background searches."""
