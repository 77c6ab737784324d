"""MD5 checksums of several inputs at once, against hashlib."""

import _ctypes
import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core import hashing

LIBRARY = hashing.load(hashing.LIBRARY)
needs_library = pytest.mark.skipif(LIBRARY is None, reason="the library was not built")
SOURCE = Path(hashing.__file__).with_name("md5.c")
COMPILER = shutil.which("gcc") or shutil.which("clang") or ""
FOUR = "load(words, data, offset);\n        STEPS(STEP_ONE)"
OPTIONS = "-O3", "-shared", "-fPIC"
CPUS = Path("/proc/cpuinfo")
needs_avx512 = pytest.mark.skipif(
    not CPUS.exists() or "avx512vl" not in CPUS.read_text(),
    reason="the processor has no AVX-512, without which four are hashed as two times two",
)
DATA = random.Random(1).randbytes(1 << 16)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no C compiler here")


@pytest.fixture(
    scope="module",
    params=["hashlib", "library", pytest.param("portable", marks=pytest.mark.process)],
)
def library(request, tmp_path_factory):
    """None for hashlib, the library as installed, or one without AVX-512."""
    if request.param == "hashlib":
        return None
    if request.param == "library":
        return LIBRARY or pytest.skip("the library was not built")
    if not COMPILER:
        pytest.skip("there is no C compiler here")
    built = tmp_path_factory.mktemp("portable") / hashing.LIBRARY.name
    subprocess.run([COMPILER, *OPTIONS, "-DMD5_PORTABLE", "-o", built, SOURCE], check=True)
    return hashing.load(built) or pytest.fail("the portable library is wrong")


def test_a_library_without_the_functions_is_not_used():
    assert hashing.load(Path(_ctypes.__file__)) is None


def expected(data) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def test_every_length_up_to_4_kib_has_the_right_checksum(library):
    for start in range(0, 4096, 20):
        sizes = range(start, start + 20)
        checksums = [hashing.Checksum(library) for _ in sizes]
        hashing.update_all([(it, DATA[:size]) for it, size in zip(checksums, sizes, strict=True)])
        assert [it.hexdigest() for it in checksums] == [expected(DATA[:size]) for size in sizes]


@given(st.lists(st.lists(st.binary(max_size=300), max_size=6), max_size=20))
def test_pieces_of_any_size_add_up(library, inputs):
    checksums = [hashing.Checksum(library) for _ in inputs]
    for step in range(6):
        hashing.update_all(
            [
                (checksum, pieces[step])
                for checksum, pieces in zip(checksums, inputs, strict=True)
                if step < len(pieces)
            ]
        )
    assert [it.hexdigest() for it in checksums] == [expected(b"".join(it)) for it in inputs]


@pytest.mark.parametrize("view", [bytes, memoryview, lambda data: memoryview(bytearray(data))])
def test_bytes_and_views_of_them_are_taken(library, view):
    checksum = hashing.Checksum(library)
    checksum.update(view(DATA))
    checksum.update(view(b""))
    assert checksum.hexdigest() == expected(DATA)


def test_a_checksum_can_be_read_in_the_middle(library):
    checksum = hashing.Checksum(library)
    for count in range(1, 100):
        checksum.update(b"x")
        assert checksum.hexdigest() == expected(b"x" * count)


def test_a_view_is_not_kept(library):
    buffer = bytearray(DATA)
    checksum = hashing.Checksum(library)
    checksum.update(memoryview(buffer))
    buffer.clear()  # raises BufferError while something has a view of it
    assert checksum.hexdigest() == expected(DATA)


@needs_library
@pytest.mark.slow
def test_more_than_4_gib_of_bits_are_counted():
    checksum, plain = hashing.Checksum(LIBRARY), hashlib.md5(usedforsecurity=False)
    zeros = bytes(1 << 24)
    for _ in range((1 << 5) + 1):
        checksum.update(zeros)
        plain.update(zeros)
    assert checksum.hexdigest() == plain.hexdigest()


def test_a_library_that_is_missing_or_no_library_is_not_used(tmp_path):
    assert hashing.load(tmp_path / "missing.so") is None
    (tmp_path / "text.so").write_bytes(os.urandom(1000))
    assert hashing.load(tmp_path / "text.so") is None


@needs_compiler
@pytest.mark.process
@pytest.mark.parametrize(
    ("right", "wrong_text"),
    [
        ("0x698098d8", "0x698098d9"),
        ("low, other_low, 2, 3, 6, 7", "low, other_low, 2, 3, 7, 6"),
        ("data[1] + offset", "data[0] + offset"),
        pytest.param(FOUR, FOUR.replace("offset", "0"), marks=needs_avx512),
        ("load(others, data + 4, offset)", "load(others, data, offset)"),
    ],
    ids=["all", "lanes", "two lanes", "four lanes", "eight lanes"],
)
def test_a_library_that_computes_something_else_is_not_used(tmp_path, right, wrong_text):
    wrong = tmp_path / "md5.c"
    source = SOURCE.read_text()
    assert right in source
    wrong.write_text(source.replace(right, wrong_text))
    library = tmp_path / hashing.LIBRARY.name
    subprocess.run([COMPILER, *OPTIONS, "-o", library, wrong], check=True)
    assert hashing.load(library) is None


@needs_compiler
@pytest.mark.process
def test_sanitizers_find_nothing(tmp_path):
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(
        f'#include "{SOURCE}"\n'
        """
        #include <stdlib.h>
        int main(void)
        {
            struct md5 *contexts[11];
            const uint8_t *data[11];
            size_t sizes[11];
            for (int lane = 0; lane < 11; lane++)
                md5_begin(contexts[lane] = malloc(sizeof **contexts));
            for (int step = 0; step < 3000; step++) {
                for (int lane = 0; lane < 11; lane++) {
                    sizes[lane] = rand() % 400;
                    data[lane] = calloc(1, sizes[lane] + 1);
                }
                md5_update(contexts, data, sizes, 1 + step % 11);
                for (int lane = 0; lane < 11; lane++)
                    free((void *)data[lane]);
            }
            uint8_t checksum[16];
            for (int lane = 0; lane < 11; lane++) {
                md5_read(contexts[lane], checksum);
                free(contexts[lane]);
            }
            return 0;
        }
        """
    )
    sanitizers = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    built = subprocess.run(
        [COMPILER, "-O1", *sanitizers, "-o", program, tmp_path / "program.c"],
        capture_output=True,
    )
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")
    subprocess.run([program], check=True)
