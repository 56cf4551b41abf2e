import pytest

from schemasync.core.amounts import many


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "file", "0 files"), (1, "directory", "1 directory"), (2, "directory", "2 directories"), (3, "row", "3 rows")],
)
def test_a_number_agrees_with_its_noun(number: int, noun: str, text: str) -> None:
    assert many(number, noun) == text
