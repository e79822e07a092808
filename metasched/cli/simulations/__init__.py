"""Verbs: simulations of applications on systems."""
