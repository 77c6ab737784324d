"""What the output of an extraction proves."""

import pytest

from mydata_like.transfer.member_results import describe
from mydata_like.transfer.ssh.batch_sender import judge

NAMES = [b"d/a", b"d/b", b"d/c"]


def test_success_proves_every_member():
    assert judge(NAMES, b"d/a\nd/b\nd/c\n", 0, "gnu").proven == {0, 1, 2}


def test_success_that_names_too_few_proves_only_those_followed_by_another():
    assert judge(NAMES, b"d/a\nd/b\n", 0, "gnu").proven == {0}


def test_a_cut_line_proves_all_named_but_the_last():
    assert judge(NAMES, b"d/a\nd/b\nd/c\n", None, "gnu").proven == {0, 1}


def test_half_a_name_proves_nothing_about_itself_but_ends_nothing_else():
    assert judge(NAMES, b"d/a\nd/", None, "gnu").proven == set()


def test_a_member_that_was_complained_of_is_not_proven():
    output = b"d/a\ntar: d/a: Cannot open: Permission denied\nd/b\nd/c\ntar: Exiting\n"
    verdict = judge(NAMES, output, 2, "gnu")
    assert verdict.proven == {1}
    assert b"Permission denied" in verdict.complaints[0]


def test_names_are_recognised_as_tar_prints_them():
    names = ["Ü/tab\there".encode(), b'd/back\\slash "q"', b"d/end"]
    output = rb"\303\234/tab\there" + b"\n" + rb'd/back\\slash "q"' + b"\nd/end\n"
    assert judge(names, output, None, "gnu").proven == {0, 1}


def test_bsdtar_puts_a_letter_before_the_name():
    assert judge(NAMES, b"x d/a\nx d/b\nx d/c\n", None, "bsd").proven == {0, 1}


def test_a_failed_busybox_tar_proves_nothing_because_its_output_is_out_of_order():
    output = b"tar: write error: oh\nd/a\nd/b\nd/c\n"
    assert judge(NAMES, output, 1, "busybox").proven == set()


@pytest.mark.parametrize(
    "reason", [b"Cannot write: No space left on device", b"Wrote only 512 of 10240 bytes"]
)
def test_a_member_that_did_not_fit_is_not_proven(reason):
    output = b"d/a\nd/b\ntar: d/b: " + reason + b"\nd/c\n"
    result = judge(NAMES, output, 2, "gnu")
    assert result.proven == {0}
    assert describe(b"d/b", result.complaints[1]).code == "staging.full"


def test_a_member_called_like_a_complaint_is_a_member():
    names = [b"x: No space left on device", b"tar: y: Permission denied", b"z"]
    assert judge(names, b"\n".join(names) + b"\n", None, "gnu").proven == {0, 1}
