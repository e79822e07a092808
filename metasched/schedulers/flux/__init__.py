"""Flux: reading the output of its commands, and submitting jobs."""
