"""What is known of clusters: nodes, networks, partitions, queue waits, running jobs, constraints."""
