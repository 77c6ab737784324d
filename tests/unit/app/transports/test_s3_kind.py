"""The bucket of an installation, from its settings and from the approved storage box."""

import pytest

from mydata_like.app.transports.s3_kind import build_bucket
from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.schema import Transfer
from mydata_like.transfer.s3.s3_client import Bucket

OPTIONS = {
    "bucket_name": "theirs",
    "endpoint_url": "https://s3.example.org",
    "region_name": "far",
    "location": "/raw/",
    "access_key": "the server's own",
}


def test_what_the_settings_leave_open_is_that_of_the_storage_box():
    assert build_bucket(Transfer(s3_access_key="ours"), OPTIONS) == Bucket(
        name="theirs",
        endpoint="https://s3.example.org",
        region="far",
        prefix="raw",
        access_key="ours",
    )


def test_the_settings_come_first():
    values = {"s3_bucket": "ours", "s3_endpoint": "https://us.example.org/", "s3_prefix": "/a/b/"}

    bucket = build_bucket(Transfer(**values), OPTIONS)

    assert (bucket.name, bucket.endpoint, bucket.prefix) == (
        "ours",
        "https://us.example.org",
        "a/b",
    )
    assert bucket.key("set-1/file") == "a/b/set-1/file"
    assert bucket.host == "us.example.org"


@pytest.mark.parametrize(
    "address", ["http://s3.example.org", "ftp://x", "https://a:b@c", "\x1b]0;"]
)
def test_an_address_of_the_server_that_is_not_safe_is_refused(address):
    with pytest.raises(SettingsError) as caught:
        build_bucket(Transfer(), {**OPTIONS, "endpoint_url": address})

    assert caught.value.problem_code == "s3.address"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3_endpoint", "http://s3.example.org"),
        ("s3_endpoint", "s3.example.org"),
        ("s3_prefix", "raw/../other"),
        ("s3_prefix", "raw//scope"),
        ("s3_bucket", "a\nb"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(name, value):
    with pytest.raises(InvalidSettingsError, match=name):
        Transfer(**{name: value})
