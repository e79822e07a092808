"""Topology, enumeration of resource sets, and the ranker."""
