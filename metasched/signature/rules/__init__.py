"""An application for any number of processes: roles of processes, their programs, and rules for all numbers."""
