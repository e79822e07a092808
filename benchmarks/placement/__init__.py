"""Placement beside its peers: regret and time of searches, speed at scale, a stream of jobs under several policies."""
