"""Replays of job logs: what orders made by predictions bring."""
