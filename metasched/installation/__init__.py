"""Installs the hooks of a batch scheduler: a plan first, then its steps, each of which can be undone."""
