"""Who may have which token: every role with and without a node and a user."""

from __future__ import annotations

import pytest

from metasched.records import InputError
from metasched.store.errors import StoreError
from metasched.store.roles import ROLES, check_token

ONLY = "expected a node or a site for an agent or a site only"
IN_ONE_LINE = "holds characters that cannot be shown, expected a name in one line"
FOR_READERS = "a user may be named for a reader only: other roles see no jobs, or all"


@pytest.mark.parametrize(
    ("name", "role", "node", "user", "refusal"),
    [
        ("t", "agent", "n1", None, ""),
        ("t", "site", "west", None, ""),
        ("t", "scheduler", None, None, ""),
        ("t", "admin", None, None, ""),
        ("t", "reader", None, None, ""),
        ("t", "reader", None, "ann", ""),
        ("t", "root", None, None, "role is 'root', expected one of agent, site, scheduler, reader, admin"),
        ("", "reader", None, None, "name of the token is empty, expected a name"),
        ("t", "agent", None, None, "no node is named, expected one for the role agent (--node)"),
        ("t", "agent", "", None, "no node is named, expected one for the role agent (--node)"),
        ("t", "agent", "n[1-3]", None, "node is 'n[1-3]', expected the name of one node"),
        ("t", "agent", "n1,n2", None, "node is 'n1,n2', expected the name of one node"),
        ("t", "agent", "n1,", None, "node is 'n1,', expected the name of one node"),
        ("t", "agent", "n[1-", None, "node is 'n[1-', expected the name of one node"),
        ("t", "agent", "rack-1.n_2", None, ""),
        ("t", "site", "a, b", None, ""),
        ("t", "site", None, None, "no site is named, expected one for the role site (--site)"),
        ("t", "scheduler", "n1", None, f"'n1' is named for the role scheduler, {ONLY}"),
        ("t", "reader", "", None, f"'' is named for the role reader, {ONLY}"),
        ("t", "reader", None, "", FOR_READERS),
        ("t", "admin", None, "ann", FOR_READERS),
        ("t", "agent", "n1", "ann", FOR_READERS),
        ("t\nadmin", "reader", None, None, f"'t\\nadmin' {IN_ONE_LINE}"),
        ("t", "agent", "n\x1b1", None, f"'n\\x1b1' {IN_ONE_LINE}"),
        ("t", "reader", None, "a\u2028b", f"'a\\u2028b' {IN_ONE_LINE}"),
        ("bad näme's", "reader", None, None, ""),
    ],
)
def test_a_token_has_what_its_role_needs_and_nothing_else(
    name: str, role: str, node: str | None, user: str | None, refusal: str
) -> None:
    if refusal:
        with pytest.raises(InputError) as refused:
            check_token(name, role, node, user)
        assert str(refused.value) == refusal
    else:
        assert (check_token(name, role, node, user), role in ROLES) == (role, True)


def test_an_error_of_the_database_names_it_where_it_is_known() -> None:
    assert (str(StoreError("is full")), str(StoreError("is full", where="site.db"))) == ("is full", "site.db: is full")
