"""Under which names the loads of nodes are reported: two schedulers may each have a node n1, of one or two machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from metasched.plain_numbers import number_of


@dataclass(frozen=True, slots=True)
class LoadNames:
    """The names that agents and sources have for the nodes of schedulers.

    A name that several schedulers have counts for none of them, unless it is said to be one machine: a job would be
    placed by the load of somebody else's node. Such nodes are like those that never reported.

    Parameters
    ----------
    prefixes : put before the names of the nodes of a scheduler, by its name; others have none.
    shared : names of single machines that several schedulers have.
    contested : names that several schedulers have, of which it is not known whether they are of one machine.

    Examples
    --------
    >>> names = LoadNames({"west": "w-"}).having("west", ["n1"]).having("east", ["n1", "n2"]).having("south", ["n2"])
    >>> names.of("west", ("n1",)), names.of("east", ("n1", "n2")), sorted(names.contested)
    (('w-n1',), ('n1', 'n2 of east'), ['n2'])
    """

    prefixes: Mapping[str, str] = field(default_factory=dict)
    shared: Collection[str] = frozenset()
    contested: frozenset[str] = frozenset()
    _of_each: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def having(self, scheduler: str, nodes: Iterable[str]) -> LoadNames:
        """These names, where a scheduler has these nodes now."""
        prefix = self.prefixes.get(scheduler, "")
        own = frozenset(prefix + node for node in nodes)
        if self._of_each.get(scheduler) == own:
            return self
        of_each = {**self._of_each, scheduler: own}
        counts = Counter(chain.from_iterable(of_each.values())) if len(of_each) > 1 else {}
        several = frozenset(name for name, count in counts.items() if count > 1)
        return replace(self, contested=several.difference(self.shared), _of_each=of_each)

    @property
    def known(self) -> frozenset[str]:
        """The names of all nodes, the contested ones among them."""
        return frozenset().union(*self._of_each.values())

    def schedulers_of(self, name: str) -> list[str]:
        """The schedulers that have a node of this name."""
        return [scheduler for scheduler, own in self._of_each.items() if name in own]

    def of(self, scheduler: str, nodes: tuple[str, ...]) -> tuple[str, ...]:
        """The name of each node of a scheduler; for a contested one, a name that nobody reports."""
        prefix = self.prefixes.get(scheduler, "")
        if not prefix and not self.contested:  # mostly, and there may be a hundred thousand
            return nodes
        return tuple(f"{node} of {scheduler}" if prefix + node in self.contested else prefix + node for node in nodes)

    def fault(self) -> str:
        """One line that says how many names are contested, empty where none is."""
        if not self.contested:
            return ""
        names = number_of(len(self.contested), "node name")
        return f"several schedulers share {names}, so those loads are unknown: metasched doctor lists them"
