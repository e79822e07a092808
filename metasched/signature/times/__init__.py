"""The time of a run on any number of processes, by simulated clocks."""
