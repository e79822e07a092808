"""The routes of the daemon, by noun, with what stands before them: authentication, limits, slow clients."""
