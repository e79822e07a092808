"""What runs on every node: samples, keeps them on disk until the daemon has them, and answers probes."""
