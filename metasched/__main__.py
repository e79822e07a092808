"""``python -m metasched`` is the command line."""

from metasched.cli import main

main()
