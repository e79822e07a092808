"""Plans and times of made-up applications, which :mod:`tests.signature.test_whole_answers` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from benchmarks.signature.applications import APPLICATIONS
from metasched.records import InputError
from metasched.signature.rules.expanding import expanded, sampled
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.irregular import statistical
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.rules.reporting import equations, valid_counts
from metasched.signature.synthetic.collective_times import MEASURED, Collective
from metasched.signature.synthetic.message_kinds import kinds_of
from metasched.signature.synthetic.plan import planned
from metasched.signature.synthetic.result import Result, digest, timed
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import assumed
from metasched.signature.times.timed import Timed
from metasched.signature.traces.exchanges import exchanges
from tests.signature.drawn_on_grids import Drawn, drawn

#: Seeds of drawn programs; some others take seconds each.
SEEDS = [seed for seed in range(40) if seed not in (0, 3, 9, 12, 18, 20, 24, 26, 29, 30, 35, 38)]


#: Numbers in texts that are rounded, so that the last digit differs between processors.
_ROUNDED = re.compile(r"-?(?:\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d{5,})")


def digest_of(document: Any) -> str | list[Any]:
    """What distinguishes documents: a few letters, and a mean of the numbers that processors compute differently."""
    numbers: list[float] = []

    def without_numbers(text: str) -> str:
        numbers.extend(map(float, _ROUNDED.findall(text)))
        return _ROUNDED.sub("", text)

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(part[key]) for key in sorted(part)}
        if isinstance(part, list | tuple):
            return [plain(each) for each in part]
        if isinstance(part, float):
            numbers.append(part)
            return None
        return without_numbers(part) if isinstance(part, str) else part

    letters = hashlib.sha256(json.dumps(plain(document)).encode()).hexdigest()[:12]
    weighted = (math.cos(place) * math.asinh(1e9 * number) for place, number in enumerate(numbers))
    return [letters, math.fsum(weighted) / len(numbers)] if numbers else letters


def phases_of(told: Timed) -> list[float]:
    """The weight, the time and the computation of each phase."""
    return [number for phase in told.phases for number in (float(phase.weight), phase.time, phase.computation)]


def measured(application: Any, per_node: int) -> Result:
    """A result in which each kind of message and each operation takes another time."""
    sample = sampled(application, 64, 0)
    kinds, _ = kinds_of(sample, exchanges(sample.trace), per_node)
    known = {kind: 1e-6 * (1 + place) + 1e-9 * kind.size for place, kind in enumerate(kinds) if place % 5 != 4}
    collectives = {
        Collective(name, size): {count: 1e-6 * (3 + place) * count**0.5 + 1e-10 * size for count in (2, 4, 8, 32)}
        for place, name in enumerate(MEASURED)
        for size in (0.0, 1.0, 100.0, 1e5)
    }
    return Result(digest(application), 64, 32, per_node, 2e-9, known, collectives)


PROGRAMS: list[Any] = [*APPLICATIONS, *map(drawn, SEEDS)]


def answers_of(each: Any) -> dict[str, Any]:
    """What is made of an application, as far as it is not refused."""
    found: dict[str, Any] = {}
    try:
        for what, value in made_of(each):
            found[f"{each.name}: {what}"] = value
    except InputError as error:
        found[f"{each.name}: refused"] = str(error)
    return found


def made_of(each: Any) -> Iterator[tuple[str, Any]]:
    """What is made of an application, piece by piece."""
    traces = [each.trace(count) for count in each.counts]
    application = fit(traces).application
    yield "rules", digest_of(application.as_dict())
    told = [equations(application, traces), open_rules(application), valid_counts(application)]
    yield "reported", [digest_of(part) for part in told]
    many = 4 * each.counts[-1]
    if isinstance(each, Drawn):
        for what, by in (("statistical", statistical(traces)), ("expanded", application)):
            made = expanded(by, 2 * each.counts[-1])
            yield what, digest_of([[made.table.text(action) for action in one] for one in made.processes[:9]])
        few = planned(application, each.counts[0], 66, 1, 1e-9)
        yield "plan of few", [digest_of([few.words.tolist(), few.ranges]), few.measurable]
    yield f"times on {many}", phases_of(by_blocks(application, assumed())(many))
    for cores, per_node in ((18, 1), (34, 4)):
        plan = planned(application, 64, cores, per_node, 1.5e-9)
        parts = [plan.ranges, plan.black_holes, plan.kinds, plan.kind.tolist(), plan.sizes.tolist()]
        words = plan.words.tolist()
        yield f"plan on {cores}", [digest_of(parts), digest_of(words), len(words), plan.measurable]
        yield f"measured, {per_node} on a node", phases_of(timed(application, measured(application, per_node)))


if __name__ == "__main__":
    lines = (
        f"{json.dumps(name)}: {json.dumps(value)}" for each in PROGRAMS for name, value in answers_of(each).items()
    )
    print("{\n" + ",\n".join(lines) + "\n}")
