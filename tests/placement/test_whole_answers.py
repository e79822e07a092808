"""Every ranking, explanation and move on made-up clusters is the one that is written down."""

from __future__ import annotations

from whole_documents import compared, known_answers

from tests.placement.answers import answers

test_an_answer_is_the_one_written_down = compared(__file__, answers, rel=1e-5)


def test_answers_are_of_all_kinds() -> None:
    documents = known_answers(__file__).values()
    assert {"placements", "explanation", "scaling", "why", "decision"} <= {key for each in documents for key in each}
    assert {each["decision"]["move"] for each in documents if "decision" in each} == {True, False}
