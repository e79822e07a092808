"""Where loads come from: this host, a remote agent, Prometheus, a recorded trace, a batch scheduler; one contract."""
