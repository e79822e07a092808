"""The robust predictor, the default."""
