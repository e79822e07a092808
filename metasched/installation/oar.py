"""What is to be done for OAR to ask the daemon: files, the daemon's table, and an admission rule in OAR's database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metasched.installation.plan import Plan
from metasched.installation.steps import Join, Journal, digest
from metasched.schedulers.commands import Commands
from metasched.schedulers.oar.admission_rules import Rule, rules

#: Where the files are installed, on the server.
FOLDER = Path("/etc/oar/metasched")
FILES = (
    "admission_rule.pl", "metasched_oar.pl", "metasched_oar.py", "hooks.conf", "metasched_hooks.py",
    "metasched_advice.py", "metasched_numbers.py",
)  # fmt: skip
#: The user that OAR evaluates rules as, and the group that may use the daemon's socket.
USER, GROUP = "oar", "metasched"
#: Priority of the rule: it sees jobs as all others leave them.
PRIORITY = 1000


@dataclass(frozen=True)
class AdmissionRule:
    """Add the rule to OAR's database, or renew the one that an earlier version added.

    Parameters
    ----------
    commands : of the server.
    file : with the rule.
    text : that the file will have.
    there : the rule of metasched that the server has already, None where it has none.
    """

    commands: Commands
    file: Path
    text: str
    there: Rule | None

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        if self.there is None:
            return f"add the admission rule {self.file} with priority {PRIORITY}"
        return "" if self.there.text == self.text else f"renew the admission rule {self.there.number} by {self.file}"

    def do(self, journal: Journal) -> None:
        """Carry the step out, and note in the journal how to undo it: OAR gives the rule its number."""
        words = ["--new", "--enabled", "--priority", str(PRIORITY)]
        if self.there is not None:
            words = ["--modify", self.there.number]
        said = self.commands.run("oaradmissionrules", *words, "--from-file", str(self.file))
        found = re.search(r"#(\d+)", said)
        if found is None:
            raise RuntimeError(f"oaradmissionrules names no rule: {said.strip()[:200]}")
        journal.settings = [each for each in journal.settings if each["value"] != found[1]]
        noted = {"place": "OAR", "key": "admission rule", "value": found[1], "before": "", "digest": digest(self.text)}
        journal.settings.append(noted)


def set_back(noted: Mapping[str, str]) -> bool:
    """Delete the rule that was added, unless it has changed since; whether it was deleted.

    Raises
    ------
    RuntimeError : when OAR does not answer.
    """
    commands = Commands()
    if not any(each.number == noted["value"] and digest(each.text) == noted["digest"] for each in rules(commands)):
        return False
    commands.run("oaradmissionrules", "--delete", noted["value"])
    return True


def complete(plan: Plan, attribute: str) -> None:
    """Add what the server on this host needs.

    Parameters
    ----------
    plan : begun.
    attribute : the property of the resources that tells partitions apart, empty where that is set later.

    Raises
    ------
    InputError : when the daemon's configuration cannot be read.
    RuntimeError : when OAR does not answer.
    """
    commands = Commands()
    there = rules(commands)
    rule = plan.add_hooks(FILES, property=attribute)["admission_rule.pl"]
    plan.steps.append(Join(USER, GROUP))
    if rule.path.exists() and rule.kept:
        plan.left.append(f"the rule in OAR is not renewed, since {rule.path} was changed by hand")
    else:
        # A rule that somebody has changed is theirs.
        noted = {each["value"]: each["digest"] for each in plan.journal.settings}
        mine = next((each for each in there if noted.get(each.number) == digest(each.text)), None)
        other = next((each for each in there if each is not mine), None)
        if other is not None and mine is None and other.text != rule.text:
            plan.left.append(
                f"OAR already has a rule of metasched, {other.number}: oaradmissionrules --delete {other.number}"
            )
        else:
            plan.steps.append(AdmissionRule(commands, rule.path, rule.text, mine or other))
    plan.add_table("A server of OAR", "oar", property=attribute)
    if not attribute:
        plan.left.append(
            f"name the property that makes partitions in {plan.folder}/hooks.conf and in [[oar]] of {plan.daemon_conf}"
        )
