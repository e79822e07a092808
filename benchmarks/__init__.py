"""Measurements beside the peers, one command each, and the simulated testbed."""
