"""The JSON of replies: sensible values, or a `ValueError`."""

import pytest

from mydata_like.catalogues.mytardis.client import decode_json

BAD = {
    "nothing": b"",
    "cut": b'{"a": ',
    "deep lists": b"[" * 100_000,
    "no UTF-8": b'"\xff"',
    "half a character": b'"\\ud800"',
    "half a character as bytes": b'"\xed\xa0\x80"',
    "half a character as a key": b'{"\\udfff": 1}',
    "not a number": b"[NaN]",
    "infinity": b"[1e999]",
    "a million lists": b"[" + b"[]," * 1_000_000 + b"0]",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_malformed_json_is_a_value_error(body):
    with pytest.raises(ValueError, match=r"."):
        decode_json(body)


def test_a_byte_order_mark_is_not_part_of_the_text():
    assert decode_json(b'\xef\xbb\xbf{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
