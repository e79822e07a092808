"""What talks to a running daemon."""
