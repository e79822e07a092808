"""Jobs whose end is not known: one that ends while the controller is away is dated when the controller is back."""

from __future__ import annotations

#: How long after its start a controller may hear of jobs that ended before (s): nodes tell it again every 15 s or so.
HEARD_WITHIN = 60.0


def ended_meanwhile(started: float | None, ended: float | None, controller: float | None) -> bool:
    """Whether a job that began before the controller may have ended before it, too, whatever the controller says.

    Parameters
    ----------
    started, ended : as the controller says, whole seconds cut off; None where it does not say.
    controller : when it was started itself (s); None where that is not known.

    Examples
    --------
    >>> [ended_meanwhile(100.0, ended, 200.0) for ended in (199.0, 200.0, 230.0, 290.0)]
    [False, True, True, False]
    >>> ended_meanwhile(205.0, 230.0, 200.0)
    False
    """
    if started is None or ended is None or controller is None:
        return False
    return started < controller <= ended <= controller + HEARD_WITHIN
