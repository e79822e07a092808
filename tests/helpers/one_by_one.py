"""Every process by itself, on SimPy: what the simulation of groups must agree with.

An application here is a list of actions for each process, as a test drew them; nothing is shared with the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import simpy

#: (kind, seconds, other process or participants)
Action = tuple[str, float, object]


def clocks(actions: Mapping[int, Sequence[Action]]) -> dict[int, float]:
    """When each process ends.

    Actions are ``("work", seconds, None)``, ``("send", seconds, to)``, ``("recv", 0, from)`` and
    ``("meet", seconds, None)``, in which all processes take part.
    """
    world = simpy.Environment()
    mail = {(one, other): simpy.Store(world) for one in actions for other in actions}
    met, gate = 0, world.event()
    ends: dict[int, float] = {}

    def process(me: int):
        nonlocal met, gate
        link = 0.0
        for kind, seconds, other in actions[me]:
            if kind == "work":
                yield world.timeout(seconds)
            elif kind == "send":
                yield world.timeout(seconds)
                mail[me, other].put((world.now, seconds))
            elif kind == "recv":
                there, took = yield mail[other, me].get()
                link = max(there, link + took)
                yield world.timeout(max(link - world.now, 0.0))
            else:
                met, entered = met + 1, gate
                if met == len(actions):
                    met, gate = 0, world.event()
                    entered.succeed()
                yield entered
                yield world.timeout(seconds)
                link = world.now
        ends[me] = world.now

    for me in actions:
        world.process(process(me))
    world.run()
    return ends
