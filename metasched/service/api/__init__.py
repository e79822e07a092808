"""The routes of the daemon, by noun, with authentication, limits and protection against slow clients."""
