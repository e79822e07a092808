"""Checks of an installation: the daemon, its database and tokens, and a scheduler that is set up to ask it.

What checks of schedulers are given: ``name`` is the cluster's in the daemon's configuration, whose table for it has the
other settings, ``socket`` the daemon's Unix socket, ``folder`` that of the hook's files, and ``user`` whom it runs as.
"""
