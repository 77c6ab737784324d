"""Nearly valid inputs: samples with random changes, and JSON with unexpected values."""

import json
from random import Random
from typing import Any

EXTREMES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63,
    2**64 - 1,
)
WORDS = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"../", b"/", b"\n", b"\r\n", b"%s", b"\x1b[2J",
    b"9999-12-31T23:59:59.999999+00:00", b"0000-00-00", b"1e999", b"NaN", b"-1", b"9" * 30, b"null",
    b"[" * 500, b'{"a":' * 500, b'"', b"\\ud800", "\u202e".encode(), b"'''", b"[section]", b"= ",
)  # fmt: skip
DEEP = 100_000  # levels of nesting
LONGEST = 1 << 20  # bytes of an input


# Texts that need much memory once parsed; a reply of the largest size is filled with one of them.
BOMBS = (b'{"":0},', b"[],", b'"ab",', b"1.5,", b"[", b'{"a":', b"9", b"\n", b"a = 1\n", b"x y\n")
LARGEST = 16 << 20  # bytes


def make_bomb(random: Random, sample: bytes) -> bytes:
    """Return the beginning of a sample, followed by many repetitions of a text."""
    at = random.choice((0, 0, len(sample), random.randrange(len(sample) + 1)))
    filling = random.choice((*BOMBS, sample))
    head = random.choice((b"", b"[")) + sample[:at]
    count = random.choice((LARGEST, LONGEST)) // max(1, len(filling))
    return (head + filling * count)[: LARGEST - 1] + random.choice((b"", b"0]"))


def change_bytes(random: Random, sample: bytes) -> bytes:
    """Return the sample after a few small changes."""
    data = bytearray(sample)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        at = random.randrange(len(data) + 1)
        change = random.choice(CHANGES)
        change(random, data, at, random.choice((1, 1, 2, 4, 16, 512)))
    return bytes(data[:LONGEST])


def _flip(random: Random, data: bytearray, at: int, size: int) -> None:
    if data:
        data[at % len(data)] ^= 1 << random.randrange(8)


def _delete(random: Random, data: bytearray, at: int, size: int) -> None:
    del data[at : at + size]


def _insert(random: Random, data: bytearray, at: int, size: int) -> None:
    data[at:at] = random.randbytes(size)


def _repeat(random: Random, data: bytearray, at: int, size: int) -> None:
    data[at:at] = data[at : at + size] * random.choice((1, 2, 50))


def _insert_word(random: Random, data: bytearray, at: int, size: int) -> None:
    data[at:at] = random.choice(WORDS)


def _write_number(random: Random, data: bytearray, at: int, size: int) -> None:
    length = random.choice((1, 2, 4, 8))
    number = random.choice(EXTREMES) % 256**length
    data[at : at + length] = number.to_bytes(length, random.choice(("big", "little")))


def _overwrite(random: Random, data: bytearray, at: int, size: int) -> None:
    data[at : at + size] = random.randbytes(len(data[at : at + size]))


def _cut(random: Random, data: bytearray, at: int, size: int) -> None:
    del data[at:]


CHANGES = (_flip, _delete, _insert, _repeat, _insert_word, _write_number, _overwrite, _cut)


def change_json(random: Random, sample: bytes) -> bytes:
    """Return the JSON of a sample with other values, names and depths; the result is JSON."""
    value = json.loads(sample)
    for _ in range(random.choice((1, 1, 2, 4))):
        value = _replace(random, value)
    text = json.dumps(value).encode()
    if random.random() < 0.01:
        deep = b"[" * DEEP + b"]" * DEEP
        text = text.replace(b"null", deep, 1) if b"null" in text else deep
    return text[:LONGEST]


def _replace(random: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        changed = dict(value)
        match random.randrange(6):
            case 0:
                del changed[key]
            case 1:
                changed[_strange(random)] = changed[key]
            case _:
                changed[key] = _replace(random, changed[key])
        return changed
    if isinstance(value, list) and value and random.random() < 0.85:
        place = random.randrange(len(value))
        changed_list = list(value)
        if random.randrange(5):
            changed_list[place] = _replace(random, changed_list[place])
        else:
            changed_list[place:place] = [value[place]] * random.choice((1, 100))
        return changed_list
    return _odd(random)


def _odd(random: Random) -> Any:
    """Return a value of any kind."""
    return random.choice(
        (
            None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308,
            float("inf"), float("nan"), "", " ", "0", "-1", "9" * 5000, "true", "\0", "\ud800",
            "\u202e", "\x1b]0;x\x07", "../../etc/passwd", "/", "a" * 10_000,
            "9999-12-31T23:59:59.999999", "0001-01-01", "24:00",
            "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
            "/api/v1/x/-1/",
            [], {}, [[]], [None], {"": None}, [[[[[[]]]]]],
        )
    )  # fmt: skip


def _strange(random: Random) -> str:
    value = _odd(random)
    return value if isinstance(value, str) else "unknown"
