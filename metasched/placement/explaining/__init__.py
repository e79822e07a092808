"""Explanations of a placement: its terms, the effects of changes, and both as documents."""
