"""What nodes and links will do over a run: forecasts of the mean, of single nodes and of sets of them."""
