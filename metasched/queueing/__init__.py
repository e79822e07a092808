"""Closed queueing networks: exact and approximate solvers, bounds, and networks as JSON documents. Pure."""
