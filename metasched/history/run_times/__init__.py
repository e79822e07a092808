"""Run times of jobs that say nothing of their problem: from what their user, and others, did before."""
