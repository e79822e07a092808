"""Ways to start a job, one module a batch scheduler; this host is the simplest of them."""
