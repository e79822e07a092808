"""Checks of the daemon's side of an installation: database, daemon, socket, tokens, agents, clocks."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from metasched.doctor.findings import Finding, User
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.service.configuration import Configuration
from metasched.service.state.load_names import LoadNames
from metasched.service.state.load_sources import UNHEARD
from metasched.store.database.engine import connect, default_location, reading
from metasched.store.database.schema import HEAD, revision_of
from metasched.store.database.tables import LoadRow, TokenRow
from metasched.store.errors import StoreError
from metasched.store.files.whole_files import refusal

#: From what age on a node's newest sample is late, and how far its clock may be ahead (s).
LATE, LEAD = 120.0, 2.0
#: Names shown at most of many.
SHOWN = 5

#: Asks the daemon for a path.
Ask = Callable[[str], Any]


def check_database(location: str | None) -> Iterator[Finding]:
    """Whether the database opens, is of this version's schema, and is sound; it is only read."""
    location = location or default_location()
    if "://" not in location and not Path(location).exists():
        yield Finding("database", "wrong", f"{location} does not exist", "start the daemon, which creates it")
        return
    try:
        engine = connect(location, 10.0)
        sqlite = engine.dialect.name == "sqlite"
        with reading(engine) as connection:
            at = revision_of(connection)
            sound = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() if sqlite else "ok"
    except (InputError, StoreError) as error:
        yield Finding(
            "database",
            "wrong",
            str(error),
            "check that the server runs, the path or URL is right, and writing is allowed",
        )
        return
    name = engine.url.render_as_string(hide_password=True) if "://" in location else location
    engine.dispose()
    if sound != "ok":
        yield Finding(
            "database", "wrong", f"{name} is damaged: {sound}", "restore it: `metasched db restore --replace`"
        )
    elif at != HEAD:
        newer = at is not None and at > HEAD
        yield Finding(
            "database", "wrong", f"{name} is at schema {at or 'none'}, this metasched needs {HEAD}",
            "upgrade metasched" if newer else "restart the daemon, which upgrades it",
        )  # fmt: skip
    elif whose := _anothers(location):
        line = f"{name} belongs to {whose[0]} and its folder to {whose[1]}, who cannot write it"
        yield Finding("database", "wrong", line, f"chown {whose[1]} {name}*")
    else:
        yield Finding("database", "well", f"{name}, schema {at}")


def check_daemon(settings: Configuration, ask: Ask) -> Iterator[Finding]:
    """Whether the daemon answers, its schedulers report, and learning works."""
    began = time.perf_counter()
    try:
        status: Mapping[str, Any] = ask("/v1/status")
    except (RuntimeError, InputError) as error:
        yield Finding(
            "daemon", "wrong", str(error), "start it: `systemctl start metasched`, see `journalctl -u metasched`"
        )
        return
    took = time.perf_counter() - began
    yield Finding(
        "daemon", "well", f"version {status['version']}, mode {status['mode']}, answers in {1000 * took:.0f} ms"
    )
    for name in settings.schedulers:
        heard = status["sources"].get(name)
        late = 3 * settings.periods.partitions + 30
        if heard is None or heard > late:
            when = "no report yet" if heard is None else f"last report {heard:.0f} s ago"
            remedy = "see the daemon's log, and check that its user may run sinfo or qstat"
            yield Finding(f"scheduler {name}", "wrong", when, remedy)
        else:
            yield Finding(f"scheduler {name}", "well", f"last report {heard:.0f} s ago")
        slurm = any(each.name == name for each in settings.slurm)
        if slurm and heard is not None and settings.steer == "nodes" and name not in status["releases"]:
            yield Finding(
                f"steering {name}", "watch",
                "the daemon's user may not change waiting jobs, so jobs are steered by features instead of nodes",
                'sacctmgr modify user NAME set adminlevel=Operator, or set steer = "features"',
            )  # fmt: skip
    for source in status.get("load_sources", ()):
        age = source["age"]
        when = "never answered" if age is None else f"last answered {age:.0f} s ago"
        if source["fault"] or age is None or age > UNHEARD * source["period"]:
            remedy = "check that it is running, and its [[source]] table"
            yield Finding(f"source {source['name']}", "wrong", f"{when}: {source['fault']}", remedy)
        else:
            yield Finding(f"source {source['name']}", "well", f"{when}, for {number_of(source['nodes'], 'node')}")
    if status["learning_failures"]:
        failed = f"learning failed {number_of(status['learning_failures'], 'time')}"
        yield Finding("learning", "watch", failed, "see the daemon's log for the reasons")


def check_socket(settings: Configuration) -> Iterator[Finding]:
    """Whether the Unix socket is there; TLS where the daemon listens to others."""
    listen = settings.listen
    if listen.socket is not None:
        try:
            found = os.stat(listen.socket)
        except OSError as error:
            yield Finding("socket", "wrong", f"{listen.socket}: {refusal(error)}", "start the daemon")
        else:
            if not stat.S_ISSOCK(found.st_mode):
                yield Finding("socket", "wrong", f"{listen.socket} is not a socket", "remove it and restart the daemon")
            else:
                yield Finding("socket", "well", f"{listen.socket}, mode {stat.S_IMODE(found.st_mode):04o}")
    if why := listen.unencrypted:
        yield Finding("TLS", "wrong", why, "set certificate and key under [listen]")


def load_names(settings: Configuration, clusters: Iterable[Mapping[str, Any]]) -> LoadNames:
    """The names under which loads of the nodes of clusters are reported, which the daemon lists."""
    nodes = defaultdict[str, set[str]](set)
    for each in clusters:
        nodes[each["scheduler"]].update(node["node"] for node in each["nodes"])
    names = LoadNames(settings.prefixes, settings.shared)
    for scheduler, own in nodes.items():
        names = names.having(scheduler, own)
    return names


def check_names(names: LoadNames) -> Iterator[Finding]:
    """Whether each name of a node, as its loads are reported, is that of one machine."""
    by_schedulers = defaultdict[tuple[str, ...], list[str]](list)
    for name in sorted(names.contested):
        by_schedulers[tuple(each or "a description" for each in names.schedulers_of(name))].append(name)
    for schedulers, alike in by_schedulers.items():
        line = f"{_some(alike)}: nodes of {' and '.join(schedulers)}, whose loads are therefore unknown"
        remedy = f'shared_nodes = "{alike[0]},..." if each is one machine, else a prefix for one of the schedulers'
        yield Finding("nodes", "wrong", line, remedy)


def check_agents(settings: Configuration, nodes: list[str], now: float) -> Iterator[Finding]:
    """Whether agents may send loads and do, and whether their clocks agree with this one.

    Parameters
    ----------
    settings : the daemon's; its database is read.
    nodes : names of the nodes that jobs may be sent to.
    now : the present (s).
    """
    location = settings.database or default_location()
    if "://" not in location and not Path(location).exists():
        return  # the check of the database reports it; to open it would make it
    newest = select(LoadRow.node, func.max(LoadRow.time)).where(LoadRow.time > now - 30 * 86_400).group_by(LoadRow.node)
    try:
        engine = connect(location, 10.0)
        with reading(engine) as connection:
            per_role = connection.execute(select(TokenRow.role, func.count()).group_by(TokenRow.role))
            roles = {role: count for role, count in per_role}  # noqa: C416
            of_agents = set(connection.scalars(select(TokenRow.node).where(TokenRow.role == "agent")))
            seen = {node: heard for node, heard in connection.execute(newest)}  # noqa: C416
        engine.dispose()
    except (InputError, StoreError):
        return  # the check of the database reports it
    if roles:
        yield Finding("tokens", "well", ", ".join(f"{count} {role}" for role, count in sorted(roles.items())))
    else:
        yield Finding("tokens", "watch", "there are no tokens", "create one: `metasched token add NAME --role ROLE`")
    leads = {node: at - now for node, at in seen.items() if at - now > LEAD}
    if leads:
        worst = max(leads, key=lambda node: leads[node])
        line = f"{_some(sorted(leads))}: ahead of this host's, {worst} by {leads[worst]:.0f} s"
        yield Finding("clocks", "wrong", line, "synchronise the clocks of these nodes, with chrony or ntpd")
    elif seen:
        yield Finding("clocks", "well", f"no node's clock is more than {LEAD:g} s ahead of this host's")
    never = [node for node in nodes if node not in seen]
    late = [node for node in nodes if node in seen and now - seen[node] > LATE]
    if never:
        without = [node for node in never if node not in of_agents]
        remedy = "start metasched-agent there"
        if without:
            remedy += f", with a token: `metasched token add NAME --role agent --node {without[0]}`"
        yield Finding("agents", "wrong", f"no loads ever from {_some(never)}, which count as idle", remedy)
    if late:
        worst = max(late, key=lambda node: now - seen[node])
        line = f"no recent loads from {_some(late)}; the last from {worst} are {now - seen[worst]:.0f} s old"
        yield Finding("agents", "wrong", line, "check `systemctl status metasched-agent` and the clock there")
    if nodes and not never and not late:
        yield Finding(
            "agents", "well", f"loads of {number_of(len(nodes), 'node')} came in the last {LATE:g} s, none are missing"
        )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def _anothers(location: str) -> tuple[str, str] | None:
    """Owners of a file and of its folder, where the folder's, as which the daemon runs, cannot write the file."""
    if "://" in location:
        return None
    path = Path(location)
    owner, user = path.owner(), path.parent.owner()
    return (owner, user) if User.named(user).may(path, "rw") else None
