"""Meters of power: each reads watts, and states what it covers: package, package+memory, or node."""
