"""Whatever the OpenAPI document allows, and much that it forbids, is answered without an error of the server's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from metasched.service.app import make_app
from tests.service.daemons import headers_for, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EXAMPLES = 100


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[schemathesis.BaseSchema, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("schema")
    with running(folder, limits={"requests_per_second": 1e6, "burst": 1_000_000}) as daemon:
        headers = headers_for(daemon, "tester", "admin")
        yield schemathesis.openapi.from_asgi("/v1/openapi.json", make_app(daemon)), headers


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_is_answered_with_an_error_of_the_servers(
    mode: GenerationMode, interface: tuple[schemathesis.BaseSchema, dict[str, str]]
) -> None:
    schema, headers = interface
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 12
    asked = dict.fromkeys((operation.label for operation in operations), 0)
    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: schemathesis.Case) -> None:
            answer = case.call(headers=headers)
            asked[case.operation.label] += 1
            assert answer.status_code < 500, f"{case.as_curl_command()}: {answer.text}"

        try:
            ask()
        except Unsatisfiable:  # There is nothing in the request that could be wrong.
            assert mode is GenerationMode.NEGATIVE, operation.label
    assert sum(count >= EXAMPLES // 2 for count in asked.values()) >= 6, asked
