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
        ("[listen]\nprot = 1", "listen.prot is not a known key"),
        ("level = 1.0", "level is 1.0"),
        ('[listen]\ncertificate = "c.pem"', "certificate and key"),
        ("a = [", "not valid TOML"),
        ('[[grid_engine]]\nname = "c"\nqueues = []', r"grid_engine\[0\].queues is not a known key"),
        ('[[slurm]]\nname = "c"\n[[grid_engine]]\nname = "c"', "schedulers are called c, c, expected each name once"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_field(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        read_configuration(path)
    assert str(path) in str(refused.value)


def test_relative_paths_start_at_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text('database = "m.db"\nclusters = "c.toml"\n[listen]\nsocket = "s"\n')
    read = read_configuration(path)
    assert (read.database, read.clusters) == (str(tmp_path / "m.db"), str(tmp_path / "c.toml"))
    assert read.listen.socket == str(tmp_path / "s")
