"""A grid of four sites under one stream of jobs with data, and the policies that choose among the sites."""
