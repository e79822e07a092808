"""Checks of an installation: the daemon, its database and tokens, and a Slurm that is set up to ask it."""
