"""Real MPI programs on simulated clusters: the source of runs whose truth is known.

The way of the data: applications and clusters -> plan (what runs where, and when) -> simulator (SimGrid/SMPI under the
timeline of loads) -> monitoring (what sensors would have seen) -> campaign folder. The catalogue names the campaigns
behind the paper's tables.
"""
