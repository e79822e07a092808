"""When to probe: :class:`ProbeSchedule`, often while things change, seldom while they do not, never above a budget."""

from __future__ import annotations

#: The Network Weather Service's bounds: a change that calls for probing sooner, and one that lets it rest.
_LARGE, _SMALL = 0.15, 0.01


class ProbeSchedule:
    """Adapts the interval between probes to how much they find changed, within a budget of the probed resource.

    Parameters
    ----------
    shortest, longest : bounds of the interval (s); it starts at the shortest.
    budget : seconds of cost allowed per second; unspent budget is kept for ``longest`` seconds at most.

    Examples
    --------
    >>> schedule = ProbeSchedule(shortest=10.0, longest=40.0, budget=1.0)
    >>> schedule.due(0.0)
    True
    >>> schedule.probed(0.0, 0.90, cost=0.2)
    >>> schedule.probed(10.0, 0.905, cost=0.2)  # nothing changed: wait twice as long
    >>> schedule.due(25.0), schedule.due(30.0)
    (False, True)
    """

    def __init__(self, shortest: float = 30.0, longest: float = 900.0, budget: float = 5e-4) -> None:
        if not 0 < shortest <= longest or budget <= 0:
            raise ValueError(
                f"shortest, longest, budget are {shortest}, {longest}, {budget}; "
                "expected 0 < shortest <= longest and a budget above 0"
            )
        self.interval = shortest
        self.shortest, self.longest, self.budget = shortest, longest, budget
        self._credit = 0.0  # the first probe goes on credit
        self._last: tuple[float, float] | None = None  # moment and value of the last probe
        self._hint: float | None = None  # what was seen for nothing then

    def due(self, moment: float, hint: float | None = None) -> bool:
        """Whether the interval is over, or what is seen for nothing has changed by much, and the budget allows a probe.

        Parameters
        ----------
        moment : seconds.
        hint : what a passive view says now, as a share.
        """
        if self._last is None:
            return True
        elapsed = moment - self._last[0]
        changed = hint is not None and self._hint is not None and abs(hint - self._hint) >= _LARGE
        waited = elapsed >= (self.shortest if changed else self.interval)
        return waited and self._credit + self.budget * elapsed >= 0.0

    def probed(self, moment: float, value: float, cost: float, hint: float | None = None) -> None:
        """Take into account that a probe found ``value`` (a share, so that changes compare) and cost so much.

        Parameters
        ----------
        moment : when (s).
        value : what the probe found, a share.
        cost : processor time of the probe (s).
        hint : what the passive view said then, a share; None without one.
        """
        if self._last is not None:
            earned = self.budget * (moment - self._last[0])
            self._credit = min(self._credit + earned, self.budget * self.longest)
            change = abs(value - self._last[1])
            if change >= _LARGE:
                self.interval = max(self.interval / 2, self.shortest)
            elif change <= _SMALL:
                self.interval = min(self.interval * 2, self.longest)
        self._credit -= cost
        self._last, self._hint = (moment, value), hint
