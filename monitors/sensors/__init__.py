"""Sensors that measure instead of only counting: available CPU with a rare probe, available bandwidth and latency."""
