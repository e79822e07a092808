"""The agent of a node: samples, stores samples on disk until the daemon has them, and answers probes."""
