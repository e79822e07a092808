"""The daemon: stores the reports of nodes and jobs, learns from them, and advises where a job should run."""
