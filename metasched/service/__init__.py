"""The daemon: keeps what nodes and jobs tell it, learns from it, and answers where a job should run."""
