"""The messages on their way from one label to another: which of them a receive takes."""

from __future__ import annotations

from metasched.simulation.groups import Sent, common, without


def planned(queue: list[Sent], senders: range) -> list[tuple[Sent, int]] | None:
    """The earliest messages of some senders, in order, and their positions in the queue; None if one is missing.

    Parameters
    ----------
    queue : the messages, oldest first; one whose ranks do not fit is split in it.
    senders : their ranks.
    """
    missing, plan, place = [senders], [], 0
    while missing and place < len(queue):
        sent = queue[place]
        if len(sent.ranks) > 1 and sent.ranks.step != senders.step and len(senders) > 1:
            # Steps that do not fit: each message by itself.
            queue[place : place + 1] = [sent.cut(range(rank, rank + 1)) for rank in sent.ranks]
            continue
        for wanted in [*missing]:
            shared = common(wanted, sent.ranks)
            if len(shared):
                plan.append((sent.cut(shared), place))
                missing.remove(wanted)
                missing += without(wanted, shared)
        place += 1
    if missing:
        return None
    return sorted(plan, key=lambda each: each[0].ranks.start)


def take(queue: list[Sent], whole: Sent, ranks: range) -> None:
    """Remove the messages of some ranks from the queue.

    Parameters
    ----------
    queue : the messages, oldest first.
    whole : the entry that held them when they were planned; it may have been split since.
    ranks : of their senders.
    """
    for place, sent in enumerate(queue):
        if sent is whole or (sent.of is whole and ranks.start in sent.ranks):
            queue[place : place + 1] = [sent.cut(left, whole) for left in without(sent.ranks, ranks)]
            return
    raise ValueError(f"no message of {ranks} is in the queue")
