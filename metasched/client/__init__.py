"""What calls a running daemon. ``from metasched.client import advice`` loads nothing but the standard library."""

from metasched.client.advice import Advice, advice
from metasched.client.sites import SiteAdvice, ranked_sites
from metasched.client.workflows import Workflow

__all__ = ["Advice", "SiteAdvice", "Workflow", "advice", "ranked_sites"]
