"""Write the outputs that README.md and docs/ show anew: ``python -m tests.update_docs [PAGE ...] [--slow]``.

Only what a test would refuse is replaced, so that figures within their tolerance stay as they are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests import pages


def update(page: Path, marks: tuple[str, ...]) -> int:
    """Replace what a page shows and its commands no longer print; return how many outputs that were."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        stale = [each for each in pages.follow(page, Path(folder), marks) if not each.agrees]
    if page.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{page.name} was changed meanwhile")
    for each in stale:
        if each.status != each.expected_status:
            raise SystemExit(f"{page.name}, {each}")
    for block in reversed({each.block.begin: each.block for each in stale}.values()):
        body = block.body
        for each in stale:
            if each.block == block:
                old = f"$ {each.step.command}\n{each.step.shown}"
                body = body.replace(old, f"$ {each.step.command}\n{pages.renewed(each.step.shown, each.text)}", 1)
        text = text[: block.begin] + body + text[block.end :]
    page.write_text(text, encoding="utf-8")
    return len(stale)


def main() -> int:
    """Update the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="README.md and all of docs/ where none is named")
    parser.add_argument("--slow", action="store_true", help="the blocks that take minutes, too")
    options = parser.parse_args()
    for page in options.pages or pages.PAGES:
        print(f"{page.name}: {update(page.resolve(), ('', 'slow') if options.slow else ('',))} outputs written anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
