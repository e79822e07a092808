"""What a configuration says, and what is wrong with it in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.records import InputError
from metasched.service.configuration import read_configuration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mode = "dare"', "mode is 'dare'"),
        ("[listen]\nport = 70000", "listen.port is 70000"),
        ("[listen]\nprot = 1", r"listen.prot is not a known key, did you mean port\?"),
        (
            "[listen]\nxyzzy = 1",
            "listen.xyzzy is not a known key, expected one of host, port, socket, certificate, key$",
        ),
        ("[periods]\nacounting = 1", r"periods.acounting is not a known key, did you mean accounting\?"),
        ("level = 1.0", "level is 1.0"),
        ("[periods]\nloads = 1e300", "periods.loads is 1e\\+300, expected less than or equal to 1000000000"),
        ("[periods]\nforecasts = 1e-300", "periods.forecasts is 1e-300, expected greater than or equal to 0.01"),
        ("[keep]\nloads = 1e308", "keep.loads is 1e\\+308, expected less than"),
        ('database = ""', "database is empty, expected at least one character"),
        ('[listen]\ncertificate = "c.pem"', "certificate and key"),
        ("a = [", "not valid TOML"),
        (
            '[[grid_engine]]\nname = "c"\nqueues = []',
            r"grid_engine\[0\].queues is not a known key, expected one of name, partitions,",
        ),
        ('[[slurm]]\nname = "c"\n[[grid_engine]]\nname = "c"', "schedulers are called c, c, expected each name once"),
        (
            'clusters = "c.toml"\n[[flux]]\nname = "described"',
            "a scheduler is called described as the clusters of .*c.toml are, expected another name$",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_field(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        read_configuration(path)
    assert str(path) in str(refused.value)


def test_a_scheduler_beside_no_described_clusters_may_have_their_name(tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text('[[flux]]\nname = "described"')
    assert read_configuration(path).schedulers == ("described",)


def test_relative_paths_start_at_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text('database = "m.db"\nclusters = "c.toml"\n[listen]\nsocket = "s"\n')
    read = read_configuration(path)
    assert (read.database, read.clusters) == (str(tmp_path / "m.db"), str(tmp_path / "c.toml"))
    assert read.listen.socket == str(tmp_path / "s")


#: Where a configuration names files: the tables, and what reads the name of the file.
NAMED = {
    "listen": ('[listen]\ncertificate = "f.toml"\nkey = "f.toml"', lambda read: read.listen.certificate),
    "jwt": ('[authentication.jwt]\nalgorithm = "HS256"\nkey = "f.toml"', lambda read: read.authentication.jwt.key),
    "munge": ('[authentication.munge]\nsocket = "f.toml"', lambda read: read.authentication.munge.socket),
    "fitting": (
        '[fitting]\nscheduler = "tls://h:1"\ntls_ca_file = "f.toml"\ntls_client_cert = "c"\ntls_client_key = "k"',
        lambda read: read.fitting.tls_ca_file,
    ),
    "slurm": ('[[slurm]]\nname = "c"\nconfiguration = "f.toml"', lambda read: read.slurm[0].configuration),
    "hardware": ('[[slurm]]\nname = "c"\nhardware = "f.toml"', lambda read: read.slurm[0].hardware),
    "source": ('[[source]]\nkind = "slurm"\nconfiguration = "f.toml"', lambda read: read.source[0].configuration),
    "token": (
        '[[source]]\nkind = "agent"\nurl = "http://h"\ntoken_file = "f.toml"',
        lambda read: read.source[0].token_file,
    ),
    "site": ('[[site]]\nname = "east"\nurl = "f.toml"', lambda read: read.site[0].url),
    "ca": ('[[site]]\nname = "east"\nurl = "https://h"\nca_file = "f.toml"', lambda read: read.site[0].ca_file),
    "simulated": (
        '[[simulated]]\napplication = "a"\nplatform = "p"\nsystem = "f.toml"\nprogram = "p"\nsize = "n"',
        lambda read: read.simulated[0].system,
    ),
    "signature": (
        '[[signature]]\napplication = "a"\nplatform = "p"\nsignature = "s"\nproblem_size = 1\nhardware = "f.toml"',
        lambda read: read.signature[0].hardware,
    ),
}


@pytest.mark.parametrize("tables", NAMED)
def test_every_relative_path_starts_at_the_configuration(tables: str, tmp_path: Path) -> None:
    text, named = NAMED[tables]
    (tmp_path / "metasched.toml").write_text(text)
    assert str(named(read_configuration(tmp_path / "metasched.toml"))) == str(tmp_path / "f.toml")


def test_urls_entries_and_the_usual_places_are_no_paths(tmp_path: Path) -> None:
    tables = (
        '[[slurm]]\nname = "c"\nhardware = "galera-plus"\nconfiguration = ""\n[[site]]\nname = "e"\nurl = "https://h"'
    )
    (tmp_path / "metasched.toml").write_text(f'database = "postgresql://h/d"\n{tables}')
    read = read_configuration(tmp_path / "metasched.toml")
    assert (read.database, read.site[0].url) == ("postgresql://h/d", "https://h")
    assert (read.slurm[0].hardware, read.slurm[0].configuration) == ("galera-plus", "")
