"""Predictions from accounting alone: job logs, run times and waits of jobs without a problem size, and replays."""
