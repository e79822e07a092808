"""Run times of jobs without a problem size, predicted from earlier jobs of their user and of others."""
