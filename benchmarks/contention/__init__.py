"""The contention model judged on co-scheduled jobs: questions, their simulated truth, and the errors of each answer."""
