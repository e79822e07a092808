"""The dashboard: pages that show what the daemon knows, to a browser that has logged in."""
