"""What nodes and links will do: one-step forecasters of many series at once, and forecasts of a mean over a run."""
