"""Loads as they come in: believed or refused, stored, and then shown to placements."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from metasched.placement.loads.sampled import Sampled, sampled
from metasched.records import Load
from metasched.service.authentication import Buckets
from metasched.service.clock import Clock
from metasched.service.configuration import Configuration
from metasched.service.metrics import Metrics
from metasched.service.refusals import NotNowError, TooMuchError
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.write_queue import WriteQueue
from monitors.sources.contract import Sample
from monitors.sources.screening import Rules, Screened, screen
from monitors.sources.settings import SourceTable

DAY = 86_400.0
#: A client may send as much as this many nodes.
NODES = 1000
#: How long a source waits until what it said is stored, before it says that it is not (s).
STORED_WITHIN = 60.0


class LoadIntake:
    """Takes loads.

    Parameters
    ----------
    configuration : which loads are believed, and for how long they are kept.
    clusters : what placements see.
    writes : where loads are stored.
    metrics : that count.
    has_agent : whether a token was made for an agent on a node.
    schedulers : names of the schedulers that will say which nodes there are.
    clock : tells the time.
    """

    def __init__(
        self,
        configuration: Configuration,
        clusters: LiveClusters,
        writes: WriteQueue,
        metrics: Metrics,
        has_agent: Callable[[str], bool],
        schedulers: Sequence[str],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._clusters, self._writes, self._metrics = clusters, writes, metrics
        self._has_agent, self._schedulers = has_agent, tuple(schedulers)
        limits = configuration.limits
        rate, burst = limits.samples_per_second, limits.samples_at_once
        self._of_node, self._of_client = Buckets(rate, burst), Buckets(rate * NODES, burst * NODES)
        self._rules = Rules(ahead=limits.clock, oldest=DAY * configuration.keep.loads, bandwidth=limits.bandwidth)
        self._links: Mapping[str, float] = limits.link_of_each()

    def describe_links(self, links: Mapping[str, float]) -> None:
        """Take the links of a description (Mbit/s, by node); what the configuration says goes before it."""
        self._links = {**links, **self._links}

    def knows(self, node: str) -> bool:
        """Whether there is such a node: a scheduler or a description names it, or an agent's token was made for it.

        Until every scheduler has answered once, or where none is set up, every node may be.
        """
        answered = all(name in self._clusters.seen_at for name in self._schedulers)
        named = node in self._clusters.nodes or self._has_agent(node)
        return named or not answered or not self._clusters.nodes

    def rules(self, node: str) -> Rules:
        """What is believed of a node: no more bandwidth than its own link has, where that is known."""
        link = self._links.get(node)
        return self._rules if link is None else replace(self._rules, bandwidth=link)

    async def take(self, node: str, samples: Sequence[tuple[float, float, float]], client: str) -> Screened:
        """Screen and store samples (time, available CPU, bandwidth) of a node; return what was kept and what was not.

        Parameters
        ----------
        node : that the samples are of.
        samples : (time in s since 1970, available CPU, available bandwidth in Mbit/s).
        client : who sent them, for the log.

        Raises
        ------
        StoreError : when they cannot be stored now; nothing is shown to placements then.
        TooMuchError : when the node, or the client that speaks for it, sends more than its share: nothing is stored.
        NotNowError : when samples seem to be from the future, and it may well be that the daemon's own clock is wrong.
        """
        known, newest = self.knows(node), self._clusters.newest(node)
        if known:
            self._bound(node, client, len(samples))
            times = [at for at, _, _ in samples]
            if not math.isfinite(sum(times)):
                times = [at for at in times if math.isfinite(at)]
            latest = max(times, default=-math.inf)
            if latest > -math.inf:
                self._clock.heard(node, latest)
        screened = screen(samples, self._clock.now(), self.rules(node), newest=newest, known=known)
        if screened.refused["from the future"] and (fault := self._clock.fault()):
            future = [at for at, _, _ in samples if at > self._clock.now() + self._rules.ahead]
            if any(self._clock.may_be(at) for at in future):
                raise NotNowError(fault)
        self._metrics.screened(screened)
        loads = [Load(at, node, cpu, bandwidth) for at, cpu, bandwidth in screened.kept]
        if loads:
            await asyncio.wrap_future(self._writes.loads(loads))
            self._clusters.note(loads[-1:], self._clock.now() + self._rules.ahead)
            self._metrics.loads.inc(len(loads))
        return screened

    def _bound(self, node: str, client: str, count: int) -> None:
        """Admit samples of a node, unless it or the client has recently sent too many."""
        for bucket, name in ((self._of_client, client), (self._of_node, node)):
            if wait := bucket.wait(name, count=count):
                self._metrics.refuse_loads("too many", count)
                raise TooMuchError(f"{count} samples of {node} are too many at once, and none was accepted", wait)

    def take_from_source(
        self, table: SourceTable, own: frozenset[str], samples: Sequence[Sample], taken: Mapping[str, float]
    ) -> Sampled:
        """Screen and store what a source says; :data:`metasched.service.state.load_sources.Take`.

        Parameters
        ----------
        table : of the source.
        own : the nodes that the table names; where it names none the source may speak for all that are known.
        samples : what it said.
        taken : time of the sample that was taken last of each node (s).

        Raises
        ------
        StoreError : when the loads cannot be stored now; nothing is shown to placements then.
        """
        nodes = own or self._clusters.nodes
        found = sampled(
            samples,
            self._clock.now(),
            known=nodes.__contains__,
            rules=self.rules,
            bandwidth=lambda node: table.bandwidth or self._links.get(node),
            newest=self._clusters.newest,
            taken=taken,
        )
        self._metrics.screened(found.screened)
        if found.loads:
            self._writes.loads(found.loads).result(STORED_WITHIN)
            self._clusters.note(found.loads, self._clock.now() + self._rules.ahead)
            self._metrics.loads.inc(len(found.loads))
        return found
