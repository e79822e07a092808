"""Meters of power: each reads watts, and says what it covers: package, package+memory, or node."""
