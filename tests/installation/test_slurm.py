"""``metasched setup slurm`` shows what it would do, does it once, leaves a site's files alone, and undoes itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import call, status_of

from metasched.doctor.lua import lua_error
from metasched.doctor.slurm import check_slurm
from metasched.installation import steps
from metasched.installation.deployed import deployed
from metasched.installation.plan import Plan
from metasched.installation.steps import Join, digest, install
from metasched.service.configuration import read_configuration
from metasched.store.files.whole_files import read_text

CONF = f"ClusterName=east\nSlurmUser={os.getenv('USER', 'root') if os.getuid() else 'root'}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "slurm.conf").write_text(CONF)
    return tmp_path


def setup(site: Path, *more: str) -> int:
    words = ["setup", "slurm", "--slurm-conf", f"{site}/slurm/slurm.conf", "--config", f"{site}/metasched.toml"]
    words += ["--socket", f"{site}/m.sock", "--state", f"{site}/hooks", *more]
    return status_of(*words)


def files(site: Path) -> dict[str, str]:
    return {str(path.relative_to(site)): path.read_text() for path in site.rglob("*") if path.is_file()}


def test_the_plan_changes_nothing_and_the_setup_is_undone_to_the_byte(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(site)
    assert setup(site, "--plan") == 0
    planned = capsys.readouterr().out
    assert files(site) == before
    for expected in ("metasched-epilog", "slurm.conf", "metasched.toml", f"{site}/hooks"):
        assert expected in planned
    assert setup(site, "--yes") == 0
    installed = files(site)
    assert installed["slurm/slurm.conf"].startswith(CONF)
    assert f"EpilogSlurmctld={site}/slurm/metasched/metasched-epilog" in installed["slurm/slurm.conf"]
    assert lua_error(site / "slurm" / "job_submit.lua") in ("", None)
    assert installed["slurm/job_submit.lua"].count("function slurm_job_") == 2
    found = {each.check: each for each in check_slurm("east", f"{site}/slurm/slurm.conf", f"{site}/m.sock")}
    assert found["east: prolog"].state == "well"
    assert "Lua's" in found["east: hook"].found or found["east: hook"].state == "well"
    settings = read_configuration(site / "metasched.toml")
    assert [(each.name, each.configuration) for each in settings.slurm] == [("east", f"{site}/slurm/slurm.conf")]
    capsys.readouterr()
    assert setup(site, "--yes") == 0
    assert capsys.readouterr().out == "there is nothing to do\n"
    assert files(site) == installed
    assert setup(site, "--undo", "--plan") == 0
    assert files(site) == installed
    assert setup(site, "--undo", "--yes") == 0
    assert files(site) == before
    assert sorted(path.name for path in site.iterdir()) == ["slurm"]


def test_what_the_site_sets_in_a_file_that_slurm_conf_includes_is_not_replaced(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prolog = site / "slurm" / "own-prolog"
    prolog.write_text("#!/bin/sh\n")
    (site / "slurm" / "slurm.conf").write_text(f"{CONF}Include deep/hooks.conf\n")
    (site / "slurm" / "deep").mkdir()
    (site / "slurm" / "deep" / "hooks.conf").write_text(
        f'JobSubmitPlugins=\\\nlua,own\nPrologSlurmctld="{prolog}"\ninclude more.conf\n'
    )
    (site / "slurm" / "deep" / "more.conf").write_text(f"EpilogSlurmctld = {prolog} # as before\n")
    assert setup(site, "--yes") == 0
    assert (site / "slurm" / "slurm.conf").read_text() == f"{CONF}Include deep/hooks.conf\n"
    said = capsys.readouterr().out
    for script in ("metasched-prolog", "metasched-epilog"):
        assert f"do this by hand: in {prolog}, add the line: {site}/slurm/metasched/{script} || true" in said
    assert "JobSubmitPlugins" not in said


def test_lines_that_were_added_by_hand_are_named_when_their_hooks_are_removed(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prolog, lua = site / "slurm" / "own-prolog", site / "slurm" / "job_submit.lua"
    for script in (prolog, lua):
        script.write_text("true\n")
    (site / "slurm" / "slurm.conf").write_text(f"{CONF}PrologSlurmctld={prolog}\n")
    assert setup(site, "--yes") == 0
    named = [
        f"do this by hand: in {script}, remove the line that names {site}/slurm/metasched" for script in (lua, prolog)
    ]
    for added in (False, True):
        if added:
            prolog.write_text(f"true\n{site}/slurm/metasched/metasched-prolog || true\n")
            lua.write_text(f'pcall(dofile, "{site}/slurm/metasched/job_submit.lua")\n')
        capsys.readouterr()
        assert setup(site, "--undo", "--plan") == 0
        assert [line for line in capsys.readouterr().out.splitlines() if "by hand" in line] == named * added
    assert setup(site, "--undo", "--yes") == 0
    capsys.readouterr()
    assert setup(site, "--undo", "--yes") == 0
    assert capsys.readouterr().out.splitlines() == ["there is nothing to do", *named]


class Interrupted(BaseException):
    """What ends a setup at once, as the loss of power does."""


class Writes:
    """Lets so many files and folders be written, then interrupts: before or after the one that follows."""

    def __init__(self, most: int, patch: pytest.MonkeyPatch, *, after: bool) -> None:
        self.left, self._after = most, after
        for name in ("write_text_atomically", "write_bytes_atomically"):
            patch.setattr(steps, name, self._counted(getattr(steps, name)))
        patch.setattr(Path, "mkdir", self._counted(Path.mkdir))

    def _counted(self, write: Callable[..., object]) -> Callable[..., object]:
        def counted(*given: object, **more: object) -> object:
            self.left -= 1
            if self.left < 0 and not self._after:
                raise Interrupted
            done = write(*given, **more)
            if self.left < 0:
                raise Interrupted
            return done

        return counted


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_setup_that_is_interrupted_anywhere_is_undone_or_completed(site: Path, after: bool, again: bool) -> None:
    (site / "metasched.toml").write_text("")
    before, points = files(site), 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            writes = Writes(points, patch, after=after)
            with suppress(Interrupted):
                assert setup(site, "--yes") == 0
        if again:
            assert setup(site, "--yes") == 0
        assert setup(site, "--undo", "--yes") == 0
        assert files(site) == before
        # Its own folder, where the journal will be, is made before anything can be noted.
        left = [path for path in site.rglob("*") if path.is_dir() and path.name != "slurm"]
        assert not left or (points < 2 and left == [site / "slurm" / "metasched"])
        for path in left:
            path.rmdir()
        if writes.left >= 0:
            break
        points += 1
    assert points > 20


def test_an_upgrade_that_is_interrupted_anywhere_is_completed(site: Path) -> None:
    assert setup(site, "--yes") == 0
    installed, renewed = files(site), site / "slurm" / "metasched" / "metasched-prolog"
    journal = site / "slurm" / "metasched" / "installed.json"
    earlier, points = "#!/bin/sh\n# of an earlier version\n", 0
    while True:
        document = json.loads(installed[str(journal.relative_to(site))])
        document["files"][str(renewed)] = digest(earlier)
        journal.write_text(json.dumps(document))
        renewed.write_text(earlier)
        with pytest.MonkeyPatch.context() as patch:
            writes = Writes(points, patch, after=True)
            with suppress(Interrupted):
                assert setup(site, "--yes") == 0
        assert setup(site, "--yes") == 0
        own = str(journal.relative_to(site))
        assert files(site) | {own: ""} == installed | {own: ""}
        if writes.left >= 0:
            break
        points += 1
    assert points > 1
    assert setup(site, "--undo", "--yes") == 0
    assert list(files(site)) == ["slurm/slurm.conf"]


def test_added_lines_whose_end_is_not_marked_any_more_stay_with_all_that_follows() -> None:
    marked = b"one\n# metasched: begin\ntwo\n# metasched: end\nthree\n"
    assert steps.without_block(marked) == b"one\nthree\n"
    damaged = marked.replace(b"# metasched: end\n", b"")
    assert steps.without_block(damaged) == damaged
    assert steps.without_block(damaged + marked) == damaged + b"one\nthree\n"


def test_of_two_setups_at_once_one_is_refused_and_changes_nothing(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, statuses = files(site), []

    def meanwhile(*_: object, **__: object) -> bool:
        statuses.append(setup(site, "--yes"))
        assert files(site) == before
        return True

    monkeypatch.setattr("typer.confirm", meanwhile)
    assert setup(site) == 0
    assert statuses == [2]
    assert "another setup is running, expected it to end first" in capsys.readouterr().err
    monkeypatch.undo()
    assert files(site)["slurm/slurm.conf"].count("EpilogSlurmctld=") == 1
    assert setup(site, "--undo", "--yes") == 0
    assert files(site) == before


def test_what_the_site_has_is_left_and_the_lines_it_needs_are_told(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"job_submit.lua": "return slurm.SUCCESS\n", "prolog": "#!/bin/sh\n", "epilog": "#!/bin/sh\n"}
    for name, text in own.items():
        (site / "slurm" / name).write_text(text)
    conf = f"{CONF}JobSubmitPlugins=all_partitions\n"
    conf += "".join(f"{kind.title()}Slurmctld={site}/slurm/{kind}\n" for kind in ("prolog", "epilog"))
    (site / "slurm" / "slurm.conf").write_text(conf)
    (site / "metasched.toml").write_text('[[slurm]]\nname = "east"\n')
    before = files(site)
    assert setup(site, "--yes", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert before.items() <= files(site).items()
    assert len(output["left_to_you"]) == 4
    for expected in ("pcall(dofile", "metasched-prolog || true", "metasched-epilog || true", "all_partitions,lua"):
        assert any(expected in line for line in output["left_to_you"])
    assert setup(site, "--undo", "--yes") == 0
    assert files(site) == before


@pytest.mark.parametrize(
    ("where", "more", "left"), [("old", "", 0), ("old", "exit 0\n", 1), ("slurm/metasched", "exit 0\n", 0)]
)
def test_a_hook_of_another_version_in_another_folder_is_left_and_told(
    where: str, more: str, left: int, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epilog = site / where / "metasched-epilog"
    epilog.parent.mkdir()
    epilog.write_text(read_text(deployed() / "slurm" / epilog.name) + more)
    (site / "slurm" / "slurm.conf").write_text(f"{CONF}EpilogSlurmctld={epilog}\n")
    assert setup(site, "--plan", "--json") == 0
    told = json.loads(capsys.readouterr().out)["left_to_you"]
    assert sum(f"set EpilogSlurmctld={site}/slurm/metasched/metasched-epilog" in line for line in told) == left


def test_what_was_changed_by_hand_stays(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(site, "--yes") == 0
    rules, epilog = (site / "slurm" / "metasched" / name for name in ("rules.lua", "metasched-epilog"))
    rules.write_text("return { { application = 'cg', size = 1 } }\n")
    epilog.write_text("#!/bin/sh\nexit 0\n")
    with (site / "slurm" / "slurm.conf").open("a") as conf:
        conf.write("MaxJobCount=5\n")
    capsys.readouterr()
    assert setup(site, "--yes") == 0
    assert "metasched-epilog was changed by hand and is left" in capsys.readouterr().out
    assert setup(site, "--undo", "--yes") == 0
    assert files(site) == {
        "slurm/slurm.conf": f"{CONF}MaxJobCount=5\n",
        "slurm/metasched/rules.lua": rules.read_text(),
        "slurm/metasched/metasched-epilog": epilog.read_text(),
    }


def test_an_older_file_of_ours_is_renewed(site: Path) -> None:
    assert setup(site, "--yes") == 0
    journal, epilog = (site / "slurm" / "metasched" / name for name in ("installed.json", "metasched-epilog"))
    newest, document = epilog.read_text(), json.loads(journal.read_text())
    epilog.write_text("older\n")
    document["files"][str(epilog)] = digest("older\n")
    journal.write_text(json.dumps(document))
    assert setup(site, "--yes") == 0
    assert epilog.read_text() == newest


def test_without_yes_it_asks(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(site)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert setup(site) == 1
    assert files(site) == before


def test_where_nobody_answers_nothing_is_done(site: Path) -> None:
    before = files(site)
    words = ["setup", "slurm", "--slurm-conf", f"{site}/slurm/slurm.conf", "--config", f"{site}/metasched.toml"]
    done = subprocess.run(
        [sys.executable, "-m", "metasched", *words, "--state", f"{site}/hooks"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, files(site)) == (2, before)
    assert done.stderr.endswith("metasched: nobody answers, expected y or n, or the option --yes; nothing was done\n")
    assert "Traceback" not in done.stderr


def test_hooks_are_told_of_whole_paths(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    assert setup(site, "--yes", "--state", "kept", "--socket", "own.sock") == 0
    hooks = (site / "slurm" / "metasched" / "hooks.conf").read_text()
    assert f"\nstate = {site}/kept\n" in hooks
    assert f"\nsocket = {site}/own.sock\n" in hooks


def test_a_folder_that_slurm_conf_cannot_name_is_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "slurm").rename(site / "slurm 2")
    before = files(site)
    assert setup(site, "--yes", "--slurm-conf", f"{site}/slurm 2/slurm.conf") == 2
    assert "slurm 2/metasched: cannot be written into a hook" in capsys.readouterr().err
    assert files(site) == before


def test_slurmctld_is_restarted_where_its_user_joins_a_group(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conf, own = site / "slurm" / "slurm.conf", f"{site}/slurm/metasched"
    conf.write_text(
        f"{CONF}JobSubmitPlugins=lua\nPrologSlurmctld={own}/metasched-prolog\nEpilogSlurmctld={own}/metasched-epilog\n"
    )
    for joins in (False, True):
        monkeypatch.setattr(Join, "description", f"add {joins}" if joins else "")
        assert setup(site, "--plan", "--json") == 0
        assert ("systemctl restart slurmctld" in json.loads(capsys.readouterr().out)["then"]) is joins


def test_files_of_the_site_in_any_encoding_keep_every_byte(site: Path) -> None:
    path, before = site / "slurm" / "slurm.conf", f"# Universit\xe4t\r\n{CONF}".encode("latin-1")
    path.write_bytes(before)
    assert setup(site, "--yes") == 0
    assert path.read_bytes().startswith(before)
    assert b"EpilogSlurmctld=" in path.read_bytes()
    assert setup(site, "--undo", "--yes") == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("there", "added"),
    [
        ('[[cluster]]\nname = "intel"\nprocessors = 4\n', True),
        ("[[slurm]]\nname = 'intel'\n", False),
        ('# [[slurm]]\n# name = "intel"\n', True),
        ('[[ slurm ]]\n"name"="intel"\n', False),
    ],
)
def test_the_daemons_configuration_names_the_cluster_once_however_it_is_written(
    there: str, added: bool, site: Path
) -> None:
    (site / "metasched.toml").write_text(there)
    assert setup(site, "--yes", "--name", "intel") == 0
    text = (site / "metasched.toml").read_text()
    assert [each["name"] for each in tomllib.loads(text)["slurm"]] == ["intel"]
    assert (text != there) == added


@pytest.mark.parametrize(("name", "left"), [("east", 1), ("cluster", 0)])
def test_the_example_of_the_deployed_configuration_does_not_stay_unnoticed(
    name: str, left: int, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As another name of the same Slurm it would double all nodes."""
    (site / "metasched.toml").write_text(read_text(deployed() / "metasched.toml"))
    assert setup(site, "--yes", "--json", "--name", name) == 0
    lines = json.loads(capsys.readouterr().out)["left_to_you"]
    assert [f'{site}/metasched.toml, remove [[slurm]] name = "cluster"' in line for line in lines] == [True] * left


def test_a_configuration_that_is_no_toml_is_refused_before_anything_is_done(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "metasched.toml").write_text("[[slurm\n")
    before = files(site)
    assert setup(site, "--yes") == 2
    assert f"{site}/metasched.toml: is not valid TOML" in capsys.readouterr().err
    assert files(site) == before


def test_a_name_with_quotes_comes_to_the_daemon_as_it_is(site: Path) -> None:
    table = Plan("slurm", site / "slurm" / "metasched", 'a "b" \\ c', site / "new.toml")
    table.add_table("A Slurm cluster", "slurm")
    install(table.steps, table.journal)
    assert tomllib.loads((site / "new.toml").read_text())["slurm"] == [{"name": 'a "b" \\ c'}]


def test_a_slurm_conf_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(tmp_path, "--yes") == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "slurm.conf" in said) == (1, True)


def test_hooks_and_daemon_have_the_configuration_and_the_socket_of_the_environment(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "own.toml").write_text(f'[listen]\nsocket = "{site}/own.sock"\n')
    monkeypatch.setenv("METASCHED_CONFIG", f"{site}/own.toml")
    status, _, err = call(
        capsys, "setup", "slurm", "--slurm-conf", f"{site}/slurm/slurm.conf", "--state", f"{site}/hooks", "--yes"
    )
    assert (status, err) == (0, "")
    assert [each.name for each in read_configuration(site / "own.toml").slurm] == ["east"]
    assert f"\nsocket = {site}/own.sock\n" in (site / "slurm" / "metasched" / "hooks.conf").read_text()
