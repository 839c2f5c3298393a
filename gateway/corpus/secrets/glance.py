"""Which looks a text needs, from its words alone. Every look goes by something that must stand there – a vendor's prefix, a
label, the `://` of an address – and none of these reaches over a blank.
"""

from itertools import chain

from gateway.corpus.needles import Needles
from gateway.corpus.secrets import key_blocks, structures
from gateway.corpus.secrets.labels import ANCHORS, PINS
from gateway.corpus.secrets.shapes import may_hold_shape

_KEY_BLOCKS = tuple(max(sign.split(), key=len) for sign in key_blocks.ANCHORS)


def _more(word: str) -> int:
    looks = 1 if may_hold_shape(word) else 0
    if any(name in word for name in PINS):
        looks |= 2
    if any(sign in word for sign in _KEY_BLOCKS):
        looks |= 4
    return looks


_words = Needles(
    (*ANCHORS, structures.COOKIE, *chain.from_iterable(form.anchors for form in structures.STRUCTURES)), _more
)
SHAPES, PIN_NAMES, KEY_BLOCKS = _words.more, _words.more * 2, _words.more * 4
EVERYTHING = _words.more * 8 - 1

glance = _words.look
standing = _words.standing
