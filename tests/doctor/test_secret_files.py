"""Files of secrets that others may read, or that are not there, are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.doctor.secret_files import check_secret_files
from metasched.service.configuration import Configuration

TABLES = [
    {"listen": {"certificate": "c.pem", "key": "KEY"}},
    {"authentication": {"jwt": {"algorithm": "HS256", "key": "KEY"}}},
    {"fitting": {"scheduler": "tls://h:1", "tls_ca_file": "c", "tls_client_cert": "c", "tls_client_key": "KEY"}},
    {"site": [{"name": "east", "url": "https://east", "token_file": "KEY"}]},
    {"source": [{"kind": "agent", "url": "https://n1", "token_file": "KEY"}]},
]


def named(table: object, path: Path) -> object:
    if isinstance(table, dict):
        return {name: named(each, path) for name, each in table.items()}
    return [named(each, path) for each in table] if isinstance(table, list) else str(path) if table == "KEY" else table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: next(iter(table)))
def test_a_secret_that_everybody_may_read_is_wrong(table: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "secret"
    settings = Configuration.model_validate(named(table, path))
    assert [(each.state, "no such file" in each.found) for each in check_secret_files(settings)] == [("wrong", True)]
    path.write_text("secret")
    for mode, closed in ((0o600, True), (0o640, True), (0o644, False), (0o602, False)):
        path.chmod(mode)
        assert [each.state for each in check_secret_files(settings)] == ([] if closed else ["wrong"])


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    jwt = {"algorithm": "RS256", "key": str(tmp_path / "none"), "issuer": "i", "audience": "a"}
    assert not list(check_secret_files(Configuration.model_validate({"authentication": {"jwt": jwt}})))
