"""A stand-in of ``oaradmissionrules``, with the rules of a server in a folder: NUMBER, and NUMBER.off if disabled."""

from __future__ import annotations

import sys
from pathlib import Path

#: Prints and takes what that of OAR 2.5.9 does.
SCRIPT = """#!{python} -IS
import pathlib, sys
rules = pathlib.Path({rules!r})
what, *words = sys.argv[1:]
there = sorted((each for each in rules.iterdir() if each.suffix == ""), key=lambda each: int(each.name))
if what == "--show-all":
    assert words == ["--full"]
    for each in there:
        off = "DISABLED/" if each.with_suffix(".off").exists() else ""
        print(f"--- ({{off}}1000) RULE #{{each.name}}\\n{{each.read_text()}}\\n---")
elif what == "--show":
    assert words[1:] == ["--no-header"]
    sys.stdout.write((rules / words[0]).read_text())
elif what == "--new":
    assert words[:4] == ["--enabled", "--priority", "1000", "--from-file"]
    number = max((int(each.name) for each in there), default=0) + 1
    (rules / str(number)).write_text(pathlib.Path(words[4]).read_text())
    print(f"New admission rule created: #{{number}}")
elif what == "--modify":
    assert words[1] == "--from-file" and (rules / words[0]).exists()
    (rules / words[0]).write_text(pathlib.Path(words[2]).read_text())
    print(f"Admission rule modified: #{{words[0]}}")
elif what == "--delete":
    (rules / words[0]).unlink()
else:
    sys.exit("unknown option " + what)
"""


def installed(folder: Path) -> Path:
    """The folder of the rules of a server whose command is in ``folder``."""
    rules = folder / "rules"
    rules.mkdir()
    (rules / "1").write_text("# the site's own\n$queue_name = 'default';\n")
    (folder / "oaradmissionrules").write_text(SCRIPT.format(python=sys.executable, rules=str(rules)))
    (folder / "oaradmissionrules").chmod(0o755)
    return rules
