"""Slurm: what its partitions are now, and which jobs have ended."""
