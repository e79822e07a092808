"""Where loads come from: this host, a remote agent, Prometheus, a batch scheduler; one contract."""
