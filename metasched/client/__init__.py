"""What calls a running daemon. ``from metasched.client import advice`` loads nothing but the standard library."""

from metasched.client.advice import Advice, advice

__all__ = ["Advice", "advice"]
