"""Verbs: learning, evaluating and drawing models of applications."""
