"""Grid Engine: its queues, its jobs, and the jobs that ended."""
