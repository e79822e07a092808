"""Fitting blocks to measurements: the published forms of Table 1, and forms chosen by held-out error."""
