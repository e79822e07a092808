"""Whether the advice is good enough to be shown to users, or to place their jobs, by what became of it so far."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from metasched.modes import Mode

if TYPE_CHECKING:
    from metasched.service.configuration import EnergyChoice
    from metasched.service.quality.advice_quality import Quality

#: Jobs that must have been judged before anything is said.
ENOUGH = 20
#: Mean prediction error from which on predictions are not trusted (%).
MOST_ERROR = 30.0
#: How much smaller than it should be the share of jobs inside the interval may be, beyond what chance does: so many
#: standard deviations of a share.
FEWER_HELD, CHANCE = 0.1, 1.64
#: Share of jobs that the suggested time limit may kill.
MOST_KILLED = 0.05
#: Share of jobs on the nodes advised from which on there is nothing left to gain by placing them.
ALL_FOLLOW = 0.9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is made of the advice so far.

    Parameters
    ----------
    mode : the mode that it is good for; None while too little is known.
    why : the figures that say so, in one line.
    """

    mode: Mode | None
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The verdict as a JSON document: its fields by name."""
        return asdict(self)


def verdict(quality: Quality, choice: EnergyChoice | None = None) -> Verdict:
    """The verdict on some finished jobs.

    Advice is good for ``act`` where predictions hold and following them saves time, or jobs follow already; for
    ``advise`` where predictions hold and no time saved differs from chance, or time limits are too short; else for
    ``shadow``. Advice for least energy costs time by its nature: it is judged by the energy saved, and is good for
    ``shadow`` alone if it costs more time than it may.

    Parameters
    ----------
    quality : of the advice.
    choice : the policy; earliest completion where it is None, and where no energy of the jobs is known.

    Examples
    --------
    >>> from metasched.service.quality.advice_quality import Settled, quality
    >>> slow = [Settled(False, actual=10.0 + k % 3, there=11.0, advised=7.0 + k % 4, held=k > 1) for k in range(30)]
    >>> found = verdict(quality(slow))
    >>> found.mode, found.why
    ('act', 'predictions are off by 6.1 % on average, 93 % of them within their 90 % intervals; following the \
advice would have saved 23 % of the time (20 % to 27 %)')
    >>> verdict(quality(slow[:5]))
    Verdict(mode=None, why='5 finished jobs judged, 20 are needed')
    """
    if quality.judged < ENOUGH or quality.ppe_mean_there is None:
        return Verdict(None, f"{quality.judged} finished jobs judged, {ENOUGH} are needed")
    held, level = quality.held or 0.0, quality.level or 0.0
    accuracy = (
        f"predictions are off by {quality.ppe_mean_there:.1f} % on average, {_percent(held)} of them within "
        f"their {_percent(level)} intervals"
    )
    if quality.ppe_mean_there > MOST_ERROR:
        return Verdict("shadow", f"{accuracy}: an error above {MOST_ERROR:.0f} % is too large")
    least = max(level - FEWER_HELD, 0.0)
    if held < least - CHANCE * math.sqrt(least * (1.0 - least) / quality.judged):
        return Verdict("shadow", f"{accuracy}: the coverage is too low")
    low, high = quality.saved_low, quality.saved_high
    gain = _gain("time", quality.saved, low, high)
    if choice is not None and choice.policy == "min-energy" and quality.metered:
        if choice.max_slowdown is not None and high is not None and high < -choice.max_slowdown:
            allowed = f"more than the {_percent(choice.max_slowdown)} that max_slowdown allows"
            return Verdict("shadow", f"{accuracy}; {gain}, {allowed}")
        low, high = quality.energy_saved_low, quality.energy_saved_high
        gain = _gain("energy", quality.energy_saved, low, high)
    if high is not None and high < 0.0:
        return Verdict("shadow", f"{accuracy}; {gain}")
    if quality.killed_by_limit > MOST_KILLED * quality.jobs:
        return Verdict(
            "advise", f"{accuracy}; {quality.killed_by_limit} of {quality.jobs} would exceed the suggested time limit"
        )
    if quality.followed >= ALL_FOLLOW * quality.jobs:
        return Verdict("act", f"{accuracy}; {quality.followed} of {quality.jobs} ran where advised")
    if low is not None and low > 0.0:
        return Verdict("act", f"{accuracy}; {gain}")
    return Verdict("advise", f"{accuracy}; {gain}: this may be chance")


def _gain(of: str, saved: float | None, low: float | None, high: float | None) -> str:
    if saved is None:
        return "no job ran elsewhere than advised"
    kind, sign = ("saved", 1.0) if saved >= 0.0 else ("cost", -1.0)
    text = f"following the advice would have {kind} {_percent(sign * saved)} of the {of}"
    if low is None or high is None:
        return text
    low, high = sorted((sign * low, sign * high))
    return f"{text} ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return f"{round(100.0 * share)} %"


#: What each mode does.
MEANINGS: dict[Mode, str] = {
    "shadow": "advice is recorded, users see none of it, no job is changed",
    "advise": "users see the advice, no job is changed",
    "act": "jobs are placed",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next: in one line, and the command that does it, empty where there is nothing to do."""

    line: str
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The step as a JSON document: its line and its command."""
        return asdict(self)


def next_step(mode: Mode, verdict: Verdict) -> Step:
    """What to do in a mode after a verdict.

    >>> next_step("shadow", Verdict("act", "")).command, next_step("act", Verdict("act", "")).command
    ('metasched mode act', '')
    """
    if verdict.mode is None:
        return Step(f"too early to tell: stay in {mode} mode")
    if verdict.mode == mode:
        return Step(f"stay in {mode} mode: {MEANINGS[mode]}")
    order = ("shadow", "advise", "act")
    forward = order.index(verdict.mode) > order.index(mode)
    line = f"{'ready for' if forward else 'go back to'} {verdict.mode} mode: {MEANINGS[verdict.mode]}"
    return Step(line, f"metasched mode {verdict.mode}")
