"""What a citation marks on a page."""

import pytest

from gateway.corpus.citations import cited_boxes

PDF = {"kind": "pdf", "page": 3, "bbox": [1, 2, 3, 4], "boxes": [[1, 2, 3, 3], [1, 3, 2, 4]]}


@pytest.mark.parametrize(
    ("locator", "page", "boxes"),
    [
        (PDF, 3, [[1, 2, 3, 3], [1, 3, 2, 4]]),
        (PDF, 2, []),
        ({**PDF, "boxes": []}, 3, [[1, 2, 3, 4]]),
        ({**PDF, "boxes": [], "bbox": None}, 3, []),
        ({"kind": "text", "charStart": 0}, 1, []),
    ],
)
def test_boxes_are_marked_on_their_own_page_only(locator: dict, page: int, boxes: list) -> None:
    assert cited_boxes(locator, page) == boxes
