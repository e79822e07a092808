"""Verbs: where a job should run, whether it should move, and submitting it."""
