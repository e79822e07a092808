"""``metasched network``: delays of links from delays measured between nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.clusters.tomography import link_delays, ways_in
from metasched.plain_numbers import plain
from metasched.records import InputError
from metasched.store.files.delays import read_delays
from metasched.store.files.descriptions import read_description
from metasched.validation import Located


def network(
    measured: Annotated[list[Path], typer.Argument(help="CSV files with the columns from, to and delay, in any unit.")],
    clusters: Annotated[Path, typer.Option("--clusters", help="Description of the clusters with their switches.")],
    cluster: Annotated[str | None, typer.Option(help="Cluster of the description; by default the only one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the delays of links from delays between nodes, and say which links can be distinguished.

    Delays are round-trip times, latencies or times per word; they add up along a path through the switches.
    """
    described = read_description(clusters).clusters
    found = [each for each in described if cluster in (None, each.name)]
    if len(found) != 1:
        names = ", ".join(each.name for each in described)
        raise InputError(f"--cluster is {cluster}, expected one of {names}", where=str(clusters))
    state = found[0]
    if not isinstance(state.network, Topology):
        raise InputError(f"cluster {state.name} is described by a matrix of bandwidths, expected switches")
    tree = state.network
    ways: list[list[str]] = []
    delays: list[float] = []
    for path in measured:
        pairs, own = read_delays(path)
        with Located(str(path)):
            ways += ways_in(tree, state.nodes, pairs)
        delays += own
    links = [*state.nodes, *(f"uplink {name}" for name, up in zip(tree.switches, tree.parent, strict=True) if up >= 0)]
    explained = link_delays(ways, delays, links)
    document: dict[str, Any] = {
        "cluster": state.name,
        "measurements": len(delays),
        "links": [
            {"links": list(each.links), "delay": each.delay, "identifiable": each.identifiable, "ways": each.ways}
            for each in explained.chains
        ],
        "uncrossed": list(explained.uncrossed),
        "residual": explained.residual,
    }
    if as_json:
        output.print_json(document)
        return
    table = output.table("link", "delay", "ways", "known", left=("link", "known"), box=box.SIMPLE, pad_edge=False)
    for each in explained.chains:
        alone = "together only" if len(each.links) > 1 else "yes"
        table.add_row(" + ".join(each.links), plain(each.delay), str(each.ways), alone if each.identifiable else "no")
    output.show(table)
    output.say(f"{len(delays)} measurements are explained to within {explained.residual:.1%}")
    if explained.uncrossed:
        output.say(f"no measured path crosses {', '.join(explained.uncrossed)}")
