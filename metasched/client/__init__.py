"""What calls a running daemon. ``from metasched.client import advice`` loads nothing but the standard library."""

from metasched.client.advice import Advice, advice
from metasched.client.workflows import Workflow

__all__ = ["Advice", "Workflow", "advice"]
