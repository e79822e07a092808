"""The slowdown of jobs that share processors and links, by the networks of :mod:`metasched.queueing`."""
