"""What the daemon holds in memory: live clusters, load history and forecasts, models, what waits to be written."""
