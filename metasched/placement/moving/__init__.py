"""Whether a job that runs should move: what it has left, what that takes here and elsewhere, and what a move costs."""
