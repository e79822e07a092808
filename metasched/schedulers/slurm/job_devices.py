"""The generic resources that jobs had, GPUs foremost: by the controller, by the accounting, and by their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metasched.jobs import UNKNOWN_DEVICES, Devices
from metasched.schedulers.slurm.cells import nodes_in
from metasched.schedulers.slurm.commands import SlurmCommands
from metasched.schedulers.slurm.devices import Counts, counts, devices, had, requested, typed, uncounted
from metasched.schedulers.slurm.remembered import CONFIGURED_FOR, Remembered


class JobDevices:
    """The devices of a cluster's jobs.

    Parameters
    ----------
    commands : of the cluster.
    configuration : its settings, by the names of ``scontrol show config``.
    """

    def __init__(self, commands: SlurmCommands, configuration: Remembered[Mapping[str, str]]) -> None:
        self._commands, self._configuration = commands, configuration
        self._on_nodes = Remembered(self._generic_resources, CONFIGURED_FOR)

    def of(self, row: Mapping[str, str]) -> Devices | None:
        """The devices of a job by a row of the controller."""
        nodes = nodes_in(row["NodeList"])
        there, asked = self._has(nodes), requested(row, len(nodes))
        # A job that has its nodes for itself gets their GPUs unasked, and whether it uses them only its user knows.
        if not asked and (row["OverSubscribe"] == "NO" or not there):
            return None
        return devices(typed(had(asked, counts(row["tres-alloc"])), there))

    def accounted(self, row: Mapping[str, str]) -> Devices | None:
        """The devices of a job by a row of the accounting."""
        there, found = self._has(nodes_in(row["NodeList"])), counts(row["AllocTRES"])
        counted = self._configuration.now().get("AccountingStorageTRES", "") if there else ""
        if uncounted(counted, there) if not found else not counts(row["ReqTRES"]):
            return UNKNOWN_DEVICES
        return devices(typed(found, there)) if found or there else None

    def _has(self, nodes: Sequence[str]) -> list[Counts]:
        """What these nodes have, those that have nothing left out."""
        known = self._on_nodes.now()
        return [found for name in nodes if (found := known.get(name))]

    def _generic_resources(self) -> Mapping[str, Counts]:
        rows = self._commands.table(("NodeList", "Gres"), "sinfo", "--Node")
        return {row["NodeList"]: counts(row["Gres"]) for row in rows}
