"""The state of clusters: nodes, networks, partitions, queue waits, running jobs, constraints."""
