"""What a site's daemon answers to a ranking, as tests need it."""

from __future__ import annotations

from typing import Any

from metasched.sites.offer import Offer


def placement(cluster: str = "c/p", processors: int = 4, time: float = 100.0, wait: float = 0.0) -> dict[str, Any]:
    return {
        "rank": 1, "cluster": cluster, "nodes": ["n1"], "processors": processors, "available_cpu": 1.0,
        "available_bandwidth": 100.0, "execution_time": time, "queue_wait": wait, "slowdown": 1.0,
        "interval": {"low": 0.8 * time, "high": 1.25 * time, "level": 0.9},
    }  # fmt: skip


def answer(*placements: dict[str, Any], **fields: Any) -> dict[str, Any]:
    cluster = {"scheduler": "c", "partition": "p", "free": 8, "processors": 16, "age": 5.0}
    return {
        "format": 1, "version": "0.1.0", "placements": list(placements), "later": [], "clusters": {"c/p": cluster},
        "why": "",
    } | fields  # fmt: skip


def waiting(cluster: str = "c/p", processors: int = 4, wait: float = 300.0, time: float = 100.0) -> dict[str, Any]:
    return {
        "cluster": cluster, "processors": processors, "wait": wait, "low": 0.5 * wait, "high": 2.0 * wait,
        "execution_time": time, "execution_low": 0.8 * time, "execution_high": 1.25 * time,
    }  # fmt: skip


def offer(site: str, wait: float = 0.0, time: float = 100.0, **fields: Any) -> Offer:
    made = {"processors": 4, "free": 8, "capacity": 16, "age": 5.0} | fields
    return Offer(site, "c", wait=wait, execution_time=time, low=wait + 0.8 * time, high=wait + 1.25 * time, **made)
