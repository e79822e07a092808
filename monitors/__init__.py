"""What nodes and links are doing, and will do: sensors, sources, sampling during a run, forecasters."""
