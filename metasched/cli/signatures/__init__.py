"""Verbs: signatures of parallel applications."""
