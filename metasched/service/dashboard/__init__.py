"""The dashboard: pages about the daemon for browsers that have logged in."""
