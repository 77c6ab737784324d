import pytest

from mydata_like.settings.values import is_loopback, parse_age, parse_host, server_origin

DAY = 86_400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 day", DAY),
        ("30 days", 30 * DAY),
        ("2 weeks", 14 * DAY),
        ("6 months", 365.25 / 2 * DAY),
        ("1 year", 365.25 * DAY),
        ("  1.5 Days ", 1.5 * DAY),
        ("0 days", 0),
    ],
)
def test_an_age_is_a_number_and_a_unit(text, seconds):
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_age_is_none(text):
    assert parse_age(text) is None


@pytest.mark.parametrize(
    "text",
    ["6", "months", "-1 days", "6 moons", "1e9 days", "1 day 2 hours", "٣ days", "9999 years"],
)
def test_an_invalid_age_is_refused(text):
    with pytest.raises(ValueError, match="must be"):
        parse_age(text)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Data.Example.org", "https://data.example.org"),
        ("https://data.example.org:443/mytardis/", "https://data.example.org"),
        ("https://data.example.org:8443", "https://data.example.org:8443"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_one_server_has_one_origin(url, origin):
    assert server_origin(url) == origin


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("10.0.0.1", False),
        ("LOCALHOST", True),
        ("localhost.", False),  # some resolvers ask the network for it
        ("127.1", True),
        ("2130706433", True),  # 127.0.0.1 as one number, as C's resolver reads it
        ("0x7f.1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("1.2", False),
        ("a.localhost", False),
        ("", False),
    ],
)
def test_only_this_machine_is_loopback(host, loopback):
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("gate.example.org", "gate.example.org", None),
        ("gate.example.org:2222", "gate.example.org", 2222),
        ("me@gate.example.org:2222", "gate.example.org", 2222),
        ("[gate.example.org]:2222", "gate.example.org", 2222),
        ("fe80::1", "fe80::1", None),
        ("[fe80::1]", "fe80::1", None),
        ("[fe80::1]:22", "fe80::1", 22),
    ],
)
def test_a_host_may_have_a_port(text, host, port):
    assert parse_host(text) == (host, port)


@pytest.mark.parametrize("text", ["", ":22", "gate:", "gate:ssh", "gate:0", "gate:65536", "[gate"])
def test_what_is_no_host_is_refused(text):
    with pytest.raises(ValueError, match="write HOST, HOST:PORT"):
        parse_host(text)
