"""The content hash is a pure function of content: the seed's five cases, and the general law behind them."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.ingestion.hashing import content_hash, fingerprint

PARTS = [("text/plain", b"page one"), ("text/plain", b"page two")]
parts = st.lists(
    st.tuples(st.sampled_from(["text/plain", "text/html", ""]), st.binary(max_size=20)), max_size=6
)


def test_regenerated_ids_do_not_enter_the_hash():
    # ids have no place in the signature: the same parts made twice hash the same
    assert content_hash(list(PARTS)) == content_hash([tuple(part) for part in PARTS])


def test_changed_data_changes_the_hash():
    assert content_hash(PARTS) != content_hash([PARTS[0], ("text/plain", b"page 2")])


def test_changed_order_changes_the_hash():
    assert content_hash(PARTS) != content_hash(PARTS[::-1])


def test_changed_type_changes_the_hash():
    assert content_hash(PARTS) != content_hash([PARTS[0], ("text/html", b"page two")])


def test_empty_content_has_a_hash_of_its_own():
    assert content_hash([]) == content_hash([])
    assert content_hash([]) != content_hash([("", b"")])


@given(parts, parts)
def test_equal_hashes_mean_equal_content(one, two):
    assert (content_hash(one) == content_hash(two)) == (one == two)


def test_model_masking_and_policy_are_in_the_fingerprint():
    prints = {
        fingerprint(model="a", neutralize=False),
        fingerprint(model="b", neutralize=False),
        fingerprint(model="a", neutralize=True),
        fingerprint(model="a", neutralize=True, policy=["email"]),
    }
    assert len(prints) == 4
