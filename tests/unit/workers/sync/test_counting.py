"""What the façade's answer means for the counts of a run."""

from uuid import uuid4

import pytest

from gateway.ingestion.schemas import IngestionHandle
from workers.sync.pages import settled
from workers.sync.progress import Tally


@pytest.mark.parametrize(
    ("outcome", "attachment", "expected"),
    [
        ("queued", False, Tally(processed=1, indexed=1)),
        ("queued", True, Tally(processed=1, indexed=1, attachments_indexed=1)),
        ("duplicate", True, Tally(processed=1, skipped_dup=1)),
    ],
)
def test_an_attachment_counts_among_the_indexed_and_by_itself(outcome, attachment, expected):
    tally = Tally()
    handle = IngestionHandle(job_id=None, document_id=uuid4(), outcome=outcome, status="pending")
    assert settled("x", handle, "1", tally, attachment=attachment)["state"] == "handed"
    assert tally == expected


def test_what_is_kept_out_is_skipped_with_its_reason():
    tally = Tally()
    handle = IngestionHandle(
        job_id=None, document_id=None, outcome="skipped", status="skipped", reason="quota"
    )
    assert settled("x", handle, "1", tally)["reason"] == "quota"
    assert tally == Tally(processed=1, skipped_policy=1)
