"""Available bandwidth and latency by timed transfers between members of a clique, one at a time."""
