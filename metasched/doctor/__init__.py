"""Checks of an installation: the daemon, its database and tokens, and a scheduler that is set up to ask it."""
