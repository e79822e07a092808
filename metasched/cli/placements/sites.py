"""``metasched sites``: the sites of a grid, ranked for a job, and the state of each."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import options, output
from metasched.cli.configured import ask_daemon, daemon_address
from metasched.cli.placements import rankings
from metasched.plain_numbers import plain, span
from metasched.records import InputError
from monitors.one_line import one_line

if TYPE_CHECKING:
    from metasched.sites.resendable_jobs import KeptJob

sites = typer.Typer(help="Rank the sites of a grid for a job, submit it to the best, and show their state.",
                    no_args_is_help=True)  # fmt: skip

#: Folders at a site: what a shell there could take for anything else is refused.
_FOLDER = re.compile(r"(?:~/)?[A-Za-z0-9_./][A-Za-z0-9_./-]{0,1000}", re.ASCII)

DataOption = Annotated[float | None, typer.Option("--data", min=0, help="Data that the job needs (GB); 0 for none.")]
HeldOption = Annotated[list[str] | None, typer.Option("--held-by", help="Site that holds the data; repeatable.")]
OnlyOption = Annotated[list[str] | None, typer.Option("--site", help="Consider only this site; repeatable.")]


@sites.command("rank")
@options.grouped
def rank_sites(
    *,
    application: rankings.ApplicationOption,
    problem_size: rankings.SizeOption,
    processors: rankings.ProcessorsOption = None,
    min_processors: Annotated[int | None, typer.Option(min=1, help="Least number of processors.")] = None,
    max_processors: Annotated[int | None, typer.Option(min=1, help="Largest number of processors.")] = None,
    stated: options.SettingsOptions,
    data: DataOption = None,
    held_by: HeldOption = None,
    only: OnlyOption = None,
    url: options.UrlOption = None,
    config: options.ConfigOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Rank the sites of a grid by when a job would complete there, including the transfer of its data.

    The daemon asks the daemons of its sites. A site without a valid answer in time is left out, with the reason.
    """
    asked: dict[str, Any] = {
        "application": application, "problem_size": problem_size, "data": data, "held_by": held_by or [],
        "sites": only or [], "min_processors": min_processors, "max_processors": max_processors,
        "processors": options.counts("--processors", processors) or None,
        **stated.for_daemon(),
    }  # fmt: skip
    asked = {name: value for name, value in asked.items() if value is not None and value != []}
    answer = ask_daemon(config, url, "POST", "/v1/sites/rankings", asked)
    if as_json:
        output.print_json(answer)
    show(answer, table=not as_json)
    if not answer["sites"]:
        output.to_stderr(answer["why"])
        raise typer.Exit(1)


@sites.command("status")
def site_status(
    url: options.UrlOption = None, config: options.ConfigOption = None, as_json: options.JsonOption = False
) -> None:
    """Show how each site last answered, how far it is trusted, and the jobs sent to it."""
    answer = ask_daemon(config, url, "GET", "/v1/sites")
    if as_json:
        output.print_json(answer)
        return
    if not answer["sites"]:
        raise InputError("no site is configured, expected [[site]] in the daemon's configuration")
    headings = ("site", "asked", "answers in", "bandwidth", "by", "actual/predicted", "outcomes", "open")
    table = Table(*headings, box=box.SIMPLE)
    for each in answer["sites"]:
        asked = "never" if each["asked"] is None else f"{span(each['asked'])} ago"
        width = "–" if each["bandwidth"] is None else f"{plain(each['bandwidth'])} Mbit/s"
        trust = each["trust"]
        table.add_row(
            each["site"], asked, span(each["seconds"] or None), width, _measured(each),
            f"{trust['multiplier']:.2g}" if trust["outcomes"] else "–", f"{trust['outcomes']}", f"{each['open']}",
        )  # fmt: skip
    output.show(table)
    for each in answer["sites"]:
        if each["fault"]:
            output.say(f"{each['site']}: {one_line(each['fault'])}")
        if offset := each.get("clock"):
            way = "ahead of" if offset > 0 else "behind"
            output.say(f"{each['site']}: its clock is {span(abs(offset))} {way} this one; nothing depends on it")
        # A daemon of an earlier version does not tell warnings.
        for line in each.get("warnings", ()):
            output.say(f"{each['site']}: {one_line(line)}")
    # A daemon of an earlier version does not tell links.
    if answer.get("links"):
        _show_links(answer["links"])
    if answer["jobs"]:
        jobs = Table("site", "job", "sent", "state", "predicted", "took", box=box.SIMPLE)
        for each in answer["jobs"]:
            jobs.add_row(
                each["site"], each["job"] or "–", f"{span(each['age'])} ago", each["state"], span(each["predicted"]),
                span(each["took"]),
            )  # fmt: skip
        output.show(jobs)


def _show_links(found: dict[str, Any]) -> None:
    """The links between sites, and whether they explain the measured paths."""
    table = Table("link", "bandwidth", "round trip", "paths", "known", box=box.SIMPLE)
    for each in found["links"]:
        width = "–" if each["bandwidth"] is None else f"{plain(each['bandwidth'])} Mbit/s"
        together = "together only" if len(each["links"]) > 1 else "yes"
        table.add_row(
            one_line(" + ".join(each["links"])), width, f"{1e3 * each['round_trip']:.3g} ms", f"{each['paths']}",
            together if each["identifiable"] else "no",
        )  # fmt: skip
    output.show(table)
    left, worth = found["residual"], "" if found["explained"] else ", too badly to be used for other paths"
    output.say(
        f"the links explain bandwidths to within {left['bandwidth']:.1%}, round trips to within "
        f"{left['round_trip']:.1%}{worth}"
    )
    if found["uncrossed"]:
        output.say(f"no measured path crosses {one_line(', '.join(found['uncrossed']))}")


def _measured(site: dict[str, Any]) -> str:
    """The source of the bandwidth to a site, and the age of the last measurement."""
    # A daemon of an earlier version does not say it.
    if site.get("bandwidth_source") != "probes":
        return site.get("bandwidth_source") or "–"
    return f"probes {span(site['bandwidth_age'])} ago, round trip {1e3 * site['round_trip']:.3g} ms"


@sites.command("submit")
def submit_to_site(
    words: Annotated[
        list[str], typer.Argument(metavar="-- ARGUMENTS", help="Of sbatch: -n, -p, -t, -J, --comment, and a script.")
    ],
    data: DataOption = None,
    held_by: HeldOption = None,
    only: OnlyOption = None,
    brought: Annotated[
        list[Path] | None, typer.Option("--bring", help="File or folder to copy to the site first, by scp; repeatable.")
    ] = None,
    folder: Annotated[str, typer.Option(help="Folder at the site, made if missing; by default the home folder.")] = "",
    resend: Annotated[
        bool, typer.Option("--resend", help="Let `metasched sites resend` send it elsewhere while it waits.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the choice and submit nothing.")] = False,
    url: options.UrlOption = None,
    config: options.ConfigOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Submit a job by ssh to the site where it should complete first; if that fails, to the next one.

    The job names its application: --comment=metasched:app=cg,n=1400. Its script is sent, so it needs no shared folder.
    """
    from metasched.schedulers.portable import portable
    from metasched.sites import resendable_jobs, ssh
    from metasched.sites.resending import Resendable, UnclearError
    from metasched.sites.ssh_operations import SshOperations

    job = portable(words)
    if job.asked.mark is None:
        raise InputError(job.asked.why_no_mark)
    if resend and job.is_array:
        raise InputError(
            "its script asks for an array, whose tasks cannot be sent elsewhere as one, expected no --resend"
        )
    if job.arguments:
        raise InputError(f"the script has the argument {job.arguments[0]}, expected it to be written into the script")
    paths = brought or []
    for path in paths:
        if not path.exists():
            raise InputError("does not exist, expected a file or folder to copy", where=str(path))
    called = [path.absolute().name for path in paths]
    if twice := next((name for name in called if called.count(name) > 1), ""):
        raise InputError(f"--bring names {twice} twice, of which the site would keep one, expected each name once")
    if folder and not _FOLDER.fullmatch(folder):
        raise InputError(f"--folder is {folder!r}, expected a path of letters, digits and ._/-")
    size = data if data is not None else ssh.size_of(paths) if paths else None
    mark = job.asked.mark
    asked: dict[str, Any] = {
        "application": mark.application, "problem_size": mark.problem_size, "data": size, "held_by": held_by or [],
        "processors": [mark.processors or job.asked.processors], "sites": only or [], "send": not dry_run,
    }  # fmt: skip
    answer = ask_daemon(config, url, "POST", "/v1/sites/rankings", asked)
    show(answer, table=not as_json)
    operations = SshOperations(_reached(config, url), job, paths, folder, held_by or ())
    report: dict[str, Any] = {}
    unclear = ""
    for each in [] if dry_run else answer["sites"]:
        try:
            number, moved, seconds = operations.submit(each["site"], each["partition"])
        except (UnclearError, KeyboardInterrupt) as error:  # submitted to another site it might run twice
            unclear = f"{each['site']} may have accepted the job, look there before you submit it again: "
            unclear += one_line(str(error)) or "interrupted"
            break
        except RuntimeError as error:
            output.to_stderr(f"{each['site']} is skipped: {one_line(str(error))}")
            continue
        report = {"site": each["site"], "job": number, "data": moved, "seconds": seconds}
        break
    try:
        if as_json:
            output.print_json(answer | {"submitted": report or None})
        elif report:
            output.say(f"submitted to {report['site']} as job {report['job']}")
    finally:  # also where nobody reads that
        if not dry_run and "id" in answer and not unclear:
            if resend and report:
                state, asked_at = Resendable(answer["id"], **report), daemon_address(config, url)
                try:
                    resendable_jobs.keep(state, job, paths, folder, held_by or (), asked_at)
                except (OSError, InputError) as error:
                    output.warn([f"the job cannot be sent elsewhere later, since it was not stored: {error}"])
            try:
                ask_daemon(config, url, "PUT", f"/v1/sites/jobs/{answer['id']}", report)
            except (RuntimeError, InputError) as error:  # what was submitted stays so
                output.warn([f"what became of the job was not reported: {one_line(str(error))}"])
    if not report and not dry_run:
        output.to_stderr(unclear or answer["why"] or "no site accepted the job")
        raise typer.Exit(1)


@sites.command("resend")
def resend_jobs(
    url: options.UrlOption = None, config: options.ConfigOption = None, as_json: options.JsonOption = False
) -> None:
    """Send your jobs elsewhere that wait for longer than another site would take, if they were submitted with --resend.

    A job that has started stays. Run this repeatedly, such as by cron; an interrupted call is continued by the next.
    """
    from metasched.sites import resendable_jobs

    said: list[dict[str, str]] = []
    failed = False
    with resendable_jobs.alone() as alone:
        if not alone:
            output.to_stderr("another metasched sites resend is running")
            raise typer.Exit(1)
        files = resendable_jobs.kept_files()
        reached = _reached(config, url) if files else {}
        for path in files:
            uid = name = path.stem
            try:
                kept = resendable_jobs.kept_job(path)
                name, came = kept.job.name, _resent(kept, reached, config, url)
            except (RuntimeError, InputError, OSError) as error:  # the others go on
                came, failed = f"tried again the next time: {one_line(str(error))}", True
            said.append({"id": uid, "name": name, "came": came})
            if not as_json:
                output.say(f"{name} ({uid[:8]}): {came}")
    if as_json:
        output.print_json({"jobs": said})
    if failed:
        raise typer.Exit(1)


def _resent(kept: KeptJob, reached: dict[str, Any], config: Path | None, url: str | None) -> str:
    """What came of sending a job elsewhere that the daemon which is asked knows."""
    from metasched.sites import resendable_jobs
    from metasched.sites.resending import Resendable, resend
    from metasched.sites.ssh_operations import SshOperations

    # Another daemon knows nothing of the job, and may call another site by the name of this one.
    if kept.daemon and kept.daemon != daemon_address(config, url):
        return f"it was submitted by the daemon at {kept.daemon}, which --url names"

    def save(state: Resendable | None) -> None:
        if state is None:
            resendable_jobs.drop(kept.state.uid)
        else:
            resendable_jobs.save(replace(kept, state=state))

    operations = SshOperations(reached, kept.job, kept.paths, kept.folder, kept.held_by)
    return resend(kept.state, operations, partial(ask_daemon, config, url), save)


def _reached(config: Path | None, url: str | None) -> dict[str, Any]:
    """The connection settings of the sites, by name."""
    return {each["site"]: each for each in ask_daemon(config, url, "GET", "/v1/sites")["sites"]}


def show(answer: dict[str, Any], *, table: bool) -> None:
    """Show a ranking of sites; warnings and the sites that are left out go to stderr.

    Parameters
    ----------
    answer : of the daemon.
    table : whether the ranking itself is shown.
    """
    for each in answer["left_out"]:
        output.to_stderr(f"{each['site']} is left out: {each['why']}")
    output.warn(answer["warnings"])
    output.warn(f"{each['site']}: {line}" for each in answer["sites"] for line in each["warnings"])
    if not table or not answer["sites"]:
        return
    shown = Table("", "site", "completion", "90 % interval", "wait", "data", "run", box=box.SIMPLE)
    for each in answer["sites"]:
        interval = each["interval"]
        shown.add_row(
            f"{each['rank']}", each["site"], span(each["completion"]),
            f"{span(interval['low'])} to {span(interval['high'])}", span(each["wait"] + each["pending"]),
            span(each["transfer"]), span(each["execution_time"]),
        )  # fmt: skip
    output.show(shown)
    for each in answer["sites"]:
        output.say(f"{each['site']}: {each['reason']}")
