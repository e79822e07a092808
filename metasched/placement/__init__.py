"""Where a job should run: clusters and their topology, the exact search for resource sets, and the ranker."""
