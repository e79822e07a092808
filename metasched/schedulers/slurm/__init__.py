"""Slurm: its partitions, its jobs, and the jobs that ended."""
