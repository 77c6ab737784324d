"""The algorithms of checksums."""

import hashlib
import os

import pytest

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm

CONTENTS = [b"", b"a", bytes(range(256)) * 1000]


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_checksum_tells_its_algorithm(algorithm):
    checksum = algorithm.hash(b"abc").hexdigest()

    assert checksum == hashlib.new(algorithm.value, b"abc").hexdigest()
    assert len(checksum) == algorithm.digits
    assert Algorithm.of(checksum) is algorithm


@pytest.mark.parametrize("algorithm", Algorithm)
def test_several_inputs_have_the_checksums_of_their_algorithm(algorithm):
    checksums = [hashing.new(algorithm) for _ in CONTENTS]
    start = os.urandom(1000)

    hashing.update_all([(it, start) for it in checksums])
    hashing.update_all(list(zip(checksums, map(memoryview, CONTENTS), strict=True)))

    expected = [hashlib.new(algorithm.value, start + it).hexdigest() for it in CONTENTS]
    assert [it.hexdigest() for it in checksums] == expected
