"""Broker of NorduGrid ARC: orders the computing elements for a job by when it would be done there.

    PYTHONPATH=/etc/arc/metasched arcsub --broker PythonBroker:metasched_broker.Broker job.xrsl

A job says what it is in its environment: ``(environment=("METASCHED" "app=cg,n=1400"))``. The daemon of the grid is
asked once for each job, within a deadline. Whatever it does, ARC's own matchmaking says on which targets the job can
run, and where there is no sound answer they stay in the order that ARC has them in. Needs metasched.client, and
Python 3.11 or later.
"""

import configparser
import contextlib
import http.client
import os
import ssl
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import arc

HERE = Path(__file__).resolve().parent
#: The longest deadline that is taken from the settings (s), and the part of it in which servers tell sizes of files.
LONGEST, SIZES = 10.0, 0.5
#: Files whose sizes are asked for at most.
MOST_FILES = 32


class Broker:
    """Asks the daemon of a grid about each job.

    Parameters
    ----------
    usercfg : the user's configuration, with the argument of the broker: the file of its settings.
    """

    def __init__(self, usercfg):
        self._usercfg, self._job, self._sites, self._best = usercfg, None, {}, []

    def set(self, job):
        """Ask about a job; never raises an exception.

        Parameters
        ----------
        job : its description.
        """
        self._job, self._sites, self._best = job, {}, []
        try:
            self._ask(job)
        except Exception as error:
            say(arc.WARNING, f"targets stay in the order of ARC: {error}")

    def match(self, target):
        """Whether a job can run on a target, by ARC's own matchmaking alone.

        Parameters
        ----------
        target : queue of a computing element.
        """
        return arc.Broker.genericMatch(target, self._job, self._usercfg)

    def lessthan(self, one, other):
        """Whether a job would be done on one target before the other; never raises an exception.

        Parameters
        ----------
        one, other : queues of computing elements.
        """
        try:
            return self._rank(one) < self._rank(other)
        except Exception:
            return False

    def _ask(self, job):
        words = dict(list(each) for each in job.Application.Environment)
        mark = dict(word.partition("=")[::2] for word in words.get("METASCHED", "off")[:500].split(","))
        if "off" in mark:
            return
        path = Path(self._usercfg.Broker()[1].partition(":")[2] or HERE / "broker.conf")
        settings = configparser.ConfigParser(interpolation=None)
        with path.open() as file:
            settings.read_file(file)
        daemon, link = settings["daemon"], {}
        if daemon.get("library", sys.path[0]) not in sys.path:
            sys.path.append(daemon["library"])
        from metasched.client import ranked_sites

        if "token_file" in daemon:
            link["token"] = Path(daemon["token_file"]).expanduser().read_text().strip()
        sites = {name: value.replace(",", " ").split() for name, value in settings["sites"].items()}
        asked = {"sites": list(sites), "processors": [max(1, job.Resources.SlotRequirement.NumberOfSlots)]}
        timeout = min(daemon.getfloat("deadline", 2.0), LONGEST)
        ends = time.monotonic() + timeout
        size = gigabytes(job, SIZES * timeout) if "data" not in mark else float(mark["data"])
        if size is not None:
            asked["data"] = size
        if daemon.getboolean("send", False):
            asked["send"] = True
        self._best = ranked_sites(
            daemon["address"], mark["app"], float(mark["n"]), verify=daemon.get("ca_file", True),
            timeout=ends - time.monotonic(), **link, **asked,
        )  # fmt: skip
        if not self._best:
            raise ValueError(f"no sound answer within {timeout:g} s")
        self._sites = {address: name for name, addresses in sites.items() for address in addresses}
        for best in self._best:
            say(arc.INFO, f"{best.site}: {best.reason}")

    def _rank(self, target):
        """The smaller the sooner: the place of its site, and in that the queue that was advised before the others."""
        where = urlsplit(target.ComputingEndpoint.URLString)
        site = self._sites.get(f"{where.hostname}:{where.port}", self._sites.get(where.hostname))
        for place, best in enumerate(self._best):
            if best.site == site:
                return place, target.ComputingShare.Name != best.partition
        return len(self._best), True


def say(level, text):
    """Write a line to the user's log; never raises an exception, which would end the submission.

    Parameters
    ----------
    level, text : of the line. What looks like a directive of printf is none: ARC would follow it.
    """
    with contextlib.suppress(Exception):
        arc.Logger(arc.Logger.getRootLogger(), "metasched").msg(level, text.replace("%", "%%"))


def gigabytes(job, timeout):
    """How much data a job needs that each site would have to get (GB), None where the size of a file is not known.

    Parameters
    ----------
    job : its description; files on this machine have their size, others what it states, or what their server says.
    timeout : how long servers may take to say it (s).
    """
    total, asked = 0, []
    for each in job.DataStaging.InputFiles:
        size, sources = each.FileSize, list(each.Sources)
        if size < 0 and sources and sources[0].Protocol() == "file":
            size = Path(sources[0].Path()).stat().st_size
        if size < 0 and sources and sources[0].Protocol() in ("http", "https"):
            asked.append(sources[0])
        elif size < 0 and sources:
            return None
        total += max(size, 0)
    sizes = remote_sizes(asked, timeout)
    return None if sizes is None else (total + sum(sizes)) / 1e9


def remote_sizes(urls, timeout):
    """What the servers of files say about their sizes (bytes), None where one does not say it in time.

    Parameters
    ----------
    urls : of the files, by http or https.
    timeout : how long all servers may take together (s).
    """
    if len(urls) > MOST_FILES:
        return None
    ends, sizes = time.monotonic() + timeout, {}

    def ask(place, url):
        with contextlib.suppress(Exception):
            sizes[place] = _remote_size(url, timeout)

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in enumerate(urls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    found = [sizes.get(place) for place in range(len(urls))]
    return None if None in found else found


def _remote_size(url, timeout):
    if url.Protocol() == "https":
        context = ssl.create_default_context()
        if os.environ.get("X509_CERT_DIR"):
            context.load_verify_locations(capath=os.environ["X509_CERT_DIR"])
        connection = http.client.HTTPSConnection(url.Host(), url.Port(), timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(url.Host(), url.Port(), timeout=timeout)
    with contextlib.closing(connection):
        connection.request("HEAD", url.FullPath())
        answer = connection.getresponse()
        length = answer.headers.get("Content-Length", "")
        return int(length) if answer.status == 200 and length.isdecimal() and len(length) <= 15 else None
