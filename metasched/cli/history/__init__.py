"""Verbs: run times and waits from accounting."""
