"""Programs that are run to time or to trace an application: what of signatures is not pure."""
