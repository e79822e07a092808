"""Clients of a running daemon: its connection, and the loads that it knows."""
