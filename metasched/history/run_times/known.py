"""The predictors of run times, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from metasched.history.job_log import JobLog
from metasched.history.replay import RunTimes
from metasched.history.run_times.learned import Learned
from metasched.history.run_times.simple import Clairvoyant, Keyed, LastTwo, Requests

PREDICTORS: Mapping[str, Callable[[JobLog], RunTimes]] = MappingProxyType(
    {"requests": Requests, "last-two": LastTwo, "keyed": Keyed, "metasched": Learned, "clairvoyant": Clairvoyant}
)
