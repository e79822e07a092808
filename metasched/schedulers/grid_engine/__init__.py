"""Grid Engine: what its queues are now, and which jobs have ended."""
