"""A grid metascheduler plugin with adaptive performance models of parallel applications."""

__version__ = "0.1.0"
