"""OAR: what its commands print, and how jobs are submitted to it."""
