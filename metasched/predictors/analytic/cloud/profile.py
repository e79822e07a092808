"""The profile of one run of an MPI application: the parameters of Saad and El-Mahdy, section IV.

Five numbers are the paper's; three more are optional and say which ranks communicate: how far apart in rank the
partners are, or the shape of the process grid, and how often a process stops to wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from metasched.records import InputError, check_count

#: Numbers of a profile: their squares and quotients are numbers too.
LEAST, MOST = 1e-100, 1e100


@dataclass(frozen=True, slots=True)
class Profile:
    """One profiled run.

    Parameters
    ----------
    processes : n, at least 2.
    sends : s, messages that a process sends over the run, mean over the processes.
    message_size : m, bytes, mean over the messages.
    waiting_time : MPI_Wait, seconds that a process spends in MPI, mean over the processes.
    execution_time : T_exe, seconds, above ``waiting_time``.
    mean_distance : mean circular distance in rank between sender and receiver, from 1 to n/2; None where not recorded,
        partners are then taken to be spread evenly.
    exchanges : how often the process that does so most waits for messages over the run; None where not recorded, each
        send is then taken to be waited for.
    dimensions : of the process grid where processes send to their neighbours in one (1 for a ring); None for others.

    Examples
    --------
    >>> Profile(4, 100.0, 8_000.0, 0.5, 2.5).computation_time
    2.0
    >>> Profile(1, 100.0, 8_000.0, 0.5, 2.5)
    Traceback (most recent call last):
    metasched.records.errors.InputError: processes is 1, expected a whole number of at least 2
    """

    processes: int
    sends: float
    message_size: float
    waiting_time: float
    execution_time: float
    mean_distance: float | None = None
    exchanges: float | None = None
    dimensions: int | None = None

    def __post_init__(self) -> None:
        check_count("processes", self.processes, 2)
        object.__setattr__(self, "processes", int(self.processes))
        for name in ("sends", "message_size", "execution_time", "exchanges"):
            value = getattr(self, name)
            if value is not None and not LEAST <= value <= MOST:
                raise InputError(f"{name} is {value}, expected a number from {LEAST:g} to {MOST:g}")
        if not 0 <= self.waiting_time < self.execution_time:
            raise InputError(
                f"waiting_time is {self.waiting_time}, expected from 0 to below execution_time, {self.execution_time}"
            )
        farthest = self.processes / 2
        if self.mean_distance is not None and not 1 <= self.mean_distance <= farthest:
            raise InputError(f"mean_distance is {self.mean_distance}, expected a number from 1 to {farthest:g}")
        if self.dimensions is not None:
            check_count("dimensions", self.dimensions, 1, 6)
            object.__setattr__(self, "dimensions", int(self.dimensions))

    @property
    def computation_time(self) -> float:
        """T_exe - MPI_Wait, seconds that a process computes."""
        return self.execution_time - self.waiting_time
