"""Verbs: the daemon and the agent, their installation, and the database."""
