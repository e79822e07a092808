"""Every time and interval that a method answers is the one that is written down."""

from __future__ import annotations

import math

from whole_documents import compared, known_answers

from tests.predictors.answers import answers

test_answers_are_those_written_down_to_a_thousandth = compared(__file__, answers, rel=1e-3)


def test_each_method_answers_some_request_with_a_time() -> None:
    known = [numbers for answer in known_answers(__file__).values() for numbers in answer]
    assert [numbers for numbers in known if not any(0.0 < each < math.inf for each in numbers)] == []
