"""Asks metasched where a job of OAR should run: a JSON document on standard input, three lines on standard output.

The lines are the property that makes partitions, the partition, and the job's new mark, empty where it had none; there
are no lines where the job is to be left as it is. Any Python from 3.6 on runs it, with nothing but the standard
library; metasched_hooks.py, metasched_advice.py and metasched_numbers.py lie beside it.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True

from metasched_advice import Submitted, asking, left_alone, listed
from metasched_hooks import settings
from metasched_numbers import words_of

#: The last level of a request that counts processors, where hooks.conf names no others.
PROCESSORS = "core, resource_id"


def processors(resources: Any, found: Dict[str, str]) -> int:
    """How many processors a request of OAR asks for, 0 where that is not known.

    Parameters
    ----------
    resources : alternatives of groups of levels with their numbers.
    found : what hooks.conf says.
    """
    if len(resources) != 1 or len(resources[0][0]) != 1:
        return 0
    levels = resources[0][0][0]["resources"]
    if not levels or levels[-1]["resource"] not in listed(found.get("processors", PROCESSORS)):
        return 0
    total = 1
    for level in levels:
        if not re.match(r"\d{1,7}\Z", str(level["value"])):
            return 0
        total *= int(level["value"])
    return total


def submitted(job: Dict[str, Any], found: Dict[str, str]) -> Optional[Submitted]:
    """The job, None where it is to be left alone.

    Parameters
    ----------
    job : what OAR knows of it.
    found : what hooks.conf says.
    """
    command = bytes_of(job["command"]).decode("utf-8", "replace")
    found_mark = re.match(r"METASCHED=(\S*)\s", command)
    mark = found_mark.group(1) if found_mark else ""
    bound = job["kind"] != "PASSIVE" or job["reservation"] != "None" or job.get("hold") or job.get("after")
    several = int(job.get("array") or 1) != 1 or job.get("parameters") or job.get("types")
    if left_alone(mark) or bound or several or "property" not in found:
        return None
    count, walltime = processors(job["resources"], found), job["resources"][0][1]
    named = re.findall(r"\b{}\s*=\s*'([\w.-]+)'".format(re.escape(found["property"])), job.get("properties") or "")
    return Submitted(
        mark,
        str(job["user"]),
        bytes_of(job.get("name")),
        count,
        count,
        tuple(named) or listed(found.get("partitions", "")),
        float(walltime) if walltime else None,
        arguments=words_of(command)[1:],
        accounted=True,
    )


def bytes_of(text: Any) -> bytes:
    """What a text of OAR was before Perl took each of its bytes for a letter."""
    return str(text or "").encode("latin-1", "replace")


def main() -> None:
    """Answer about one job."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace"))
    advised, _ = asking(HERE).about(lambda found: submitted(job, found))
    if advised is not None:
        # A job that its user said nothing of is known by its command, which then stays as it is.
        mark = advised.mark if job["command"].startswith("METASCHED=") else ""
        sys.stdout.write("{}\n{}\n{}\n".format(settings(HERE)["property"], advised.queue, mark))


if __name__ == "__main__":
    main()
