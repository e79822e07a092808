"""What jobs took of the energy that Slurm's accounting records, and the processor time that they used."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

from metasched.blocks.entry import Entry
from metasched.energy_share import Coverage
from metasched.node_names import fold
from metasched.schedulers.slurm.commands import SlurmCommands, utc_time
from metasched.schedulers.slurm.energy import COLUMNS, MeteredJob, accounted, energies
from metasched.schedulers.slurm.remembered import Remembered

_log = logging.getLogger(__name__)

#: What the plugins that measure energy cover; any other, "none" among them, measures nothing that counts.
_METERS = {"rapl": "package+memory", "ipmi": "node", "xcc": "node", "pm_counters": "node"}


class JobEnergies:
    """The energies of a cluster's jobs.

    Parameters
    ----------
    name : the cluster's, for the log.
    commands : of the cluster.
    configuration : its settings, by the names of ``scontrol show config``.
    hardware : of its nodes, None where it is not known.

    Attributes
    ----------
    coverage : what the energies are of; of nothing where nothing is measured, or it was not asked yet.
    """

    def __init__(
        self, name: str, commands: SlurmCommands, configuration: Remembered[Mapping[str, str]], hardware: Entry | None
    ) -> None:
        self._name, self._commands, self._configuration = name, commands, configuration
        self._hardware, self._asked, self.coverage = hardware, False, Coverage("")

    def of(self, jobs: Sequence[str], processors: Mapping[str, int]) -> dict[str, float]:
        """What jobs took (J): all that their nodes took, or their part where others were there.

        Parameters
        ----------
        jobs : their numbers.
        processors : of each node.
        """
        if not jobs or not self._metered():
            return {}
        try:
            known = self.records(f"--jobs={','.join(jobs)}")
            shared = [job for name, job in known.items() if name in jobs and job.joules and not job.has(processors)]
            if shared:
                nodes = fold(sorted({node for job in shared for node in job.nodes}))
                begun, ended = min(job.start for job in shared), max(job.end for job in shared)
                until = "now" if math.isinf(ended) else utc_time(ended + 1.0)
                known |= self.records(f"--nodelist={nodes}", f"--starttime={utc_time(begun)}", f"--endtime={until}")
        except RuntimeError as error:
            _log.info("%s records no energy: %s", self._name, error)
            return {}
        return energies(jobs, known, processors, self.coverage)

    def records(self, *words: str) -> dict[str, MeteredJob]:
        """The jobs that the accounting finds by some options of sacct, by their numbers.

        Raises
        ------
        RuntimeError : when it does not answer.
        """
        return accounted(self._commands.table(COLUMNS, "sacct", "--allusers", *words))

    def _metered(self) -> bool:
        """Whether this Slurm measures energy, by AcctGatherEnergyType of its configuration."""
        if not self._asked:
            try:
                plugin = self._configuration.now().get("AcctGatherEnergyType", "")
            except RuntimeError as error:
                _log.info("it is unknown whether %s measures energy: %s", self._name, error)
                return False
            self._asked = True
            covers = _METERS.get(plugin.removeprefix("acct_gather_energy/").lower(), "")
            self.coverage = Coverage.of(covers, self._hardware)
        return bool(self.coverage.covers)
