"""Advice: where a job should run, how the partitions rank, and why."""
