"""What every adaptive predictor keeps: a window of runs, its domain, calibration, searches beside it."""
