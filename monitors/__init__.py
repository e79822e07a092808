"""Loads of nodes and links, present and future: sensors, sources, sampling during a run, forecasters."""
