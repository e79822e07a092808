"""Checks of Flux's side of an installation: the plugins of its frobnicator, and metasched's files.

Never run on a real instance: what ``flux config get`` prints was written down from its manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from metasched.doctor.asking_hook import check_asking_hook
from metasched.doctor.findings import Finding, User
from metasched.schedulers.commands import Commands
from metasched.schedulers.flux.listing import QUEUES

#: Prints the plugins that are called for each job, in order.
PLUGINS = ("flux", "config", "get", "--default=[]", "ingest.frobnicator.plugins")
#: The plugin, and those of Flux that turn queues into constraints and so must come behind it.
PLUGIN, BEHIND = "metasched_flux.py", ("defaults", "constraints")


def check_flux(name: str, uri: str, socket: str | None) -> Iterator[Finding]:
    """Check the instance on this host."""
    commands = Commands({"FLUX_URI": uri})
    try:
        queues = commands.read(len, *QUEUES)
        plugins = commands.read(lambda found: [str(each) for each in [*found]], *PLUGINS)
    except RuntimeError as error:
        yield Finding(f"{name}: instance", "wrong", str(error), "start flux, see uri in [[flux]]")
        return
    yield Finding(f"{name}: instance", "well", f"answers, {queues} queues")
    places = [place for place, each in enumerate(plugins) if Path(each).name == PLUGIN]
    if not places:
        found = f"the frobnicator's plugins are {', '.join(plugins) or 'not named'}"
        yield Finding(f"{name}: plugin", "wrong", found, "metasched setup flux; flux config reload")
        return
    if any(each in plugins[: places[0]] for each in BEHIND):
        found = f"{PLUGIN} comes behind {' and '.join(each for each in BEHIND if each in plugins[: places[0]])}"
        yield Finding(f"{name}: plugin", "wrong", found, "let ingest.frobnicator.plugins begin with it")
    user = User.named_or_own("flux")
    folder = Path(plugins[places[0]]).parent
    yield from check_asking_hook(
        name, folder, (PLUGIN, "metasched_advice.py", "metasched_numbers.py"), user, socket, "flux"
    )
