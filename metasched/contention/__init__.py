"""Closed queueing networks: exact and approximate solvers, and the slowdown of jobs that share."""
