"""Checks of OAR's side of an installation: the admission rule in its database, the files, and the property."""

from __future__ import annotations

from collections.abc import Iterator

from metasched.doctor.asking_hook import check_asking_hook
from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import read_settings
from metasched.schedulers.commands import Commands
from metasched.schedulers.oar.admission_rules import rules
from metasched.schedulers.oar.listing import RESOURCES


def check_oar(name: str, attribute: str, socket: str | None) -> Iterator[Finding]:
    """Check the server on this host."""
    commands = Commands()
    try:
        documents = commands.read(lambda found: [dict(each) for each in found.values()], *RESOURCES)
        calling = rules(commands)
    except RuntimeError as error:
        yield Finding(f"{name}: server", "wrong", str(error), "run this as root on OAR's server, and see oar.log")
        return
    yield Finding(f"{name}: server", "well", f"answers, {len(documents)} resources")
    if not attribute or not any(each.get(attribute) for each in documents):
        found = f"no resource has the property {attribute!r}" if attribute else "no property tells partitions apart"
        remedy = "set property under [[oar]] and in hooks.conf: jobs are left alone"
        yield Finding(f"{name}: property", "wrong" if attribute else "watch", found, remedy)
    enabled = [each for each in calling if each.enabled]
    if len(enabled) != 1:
        found = f"{len(enabled)} rules call metasched" if enabled else "no admission rule calls metasched"
        remedy = "oaradmissionrules --delete all but one" if enabled else "metasched setup oar"
        if calling and not enabled:
            found, remedy = f"rule {calling[0].number} is disabled", f"oaradmissionrules -m {calling[0].number} -Y"
        yield Finding(f"{name}: rule", "wrong", found, remedy)
    if not enabled:
        return
    folder = enabled[0].folder
    file = folder / "admission_rule.pl"
    if len(enabled) == 1:
        same = file.exists() and file.read_text(encoding="utf-8", errors="replace") == enabled[0].text
        state, remedy = ("well", "") if same else ("watch", "metasched setup oar")
        found = f"rule {enabled[0].number}" + ("" if same else f" is not that of {file}")
        yield Finding(f"{name}: rule", state, found, remedy)  # type: ignore[arg-type]
    try:
        user = User.named("oar")
    except KeyError:
        yield Finding(f"{name}: user", "wrong", "there is no user oar", "install oar-server")
        return
    files = ("metasched_oar.pl", "metasched_oar.py", "metasched_advice.py", "metasched_numbers.py")
    yield from check_asking_hook(name, folder, files, user, socket, "oar")
    said = read_settings(folder / "hooks.conf").get("property", "")
    if said != attribute:
        remedy = f"set property = {attribute}, as in the daemon's configuration"
        yield Finding(f"{name}: property", "wrong", f"{folder}/hooks.conf: property = {said}", remedy)
