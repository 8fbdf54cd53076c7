"""Reading web addresses, and which of them lead into this machine or its network."""

import ipaddress

import pytest

from tui_agent.errors import ToolError
from tui_agent.web.addresses import is_allowed, is_public, read_address, redirected, same_site


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("https://docs.python.org/3/", "https://docs.python.org/3/"),
        ("HTTPS://Docs.Python.ORG:443", "https://docs.python.org/"),
        ("http://a.b:8080/x?y=1#part", "http://a.b:8080/x?y=1"),
        ("docs.python.org/3", "https://docs.python.org/3"),
        ("https://a.b./x", "https://a.b/x"),
        ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
        ("https://docs.pythоn.org/", "https://docs.xn--pythn-mye.org/"),
        ("https://a.b/ü?q=ä", "https://a.b/%C3%BC?q=%C3%A4"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("https://a.b/a%2Fb", "https://a.b/a%2Fb"),
    ],
)
def test_one_spelling(text: str, spelling: str) -> None:
    assert str(read_address(text)) == spelling


@pytest.mark.parametrize(
    "text",
    [
        "file:///etc/passwd", "ftp://a.b/", "javascript:alert(1)", "data:text/html,x", "gopher://a.b/", "",
        "https://docs.python.org@evil.example/", "https://user:pw@a.b/", "https://", "https:///x",
        "https://a.b\\@evil.example/", "https://a.b/\r\nHost: x", "https://a b/", "https://a.b:99999/",
        "https://a..b/", "https://[::zz]/", "https://a.b/" + "x" * 9_000, "https://a.b:x/", "https://-a.b/",
        "https://a.b%2eevil.example/", "https://a.b/\ud800", "https://a.b/?q=\udcff",
    ],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        read_address(text)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.0.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
        "0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.0.192", "168.63.129.16", "198.18.0.1", "240.0.0.1",
        "::1", "::", "fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "2002:7f00:1::", "2002:a00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1", "64:ff9b:1::101:101", "::ffff:0:127.0.0.1", "::127.0.0.1", "::10.0.0.1", "fec0::1",
    ],
)  # fmt: skip
def test_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "::ffff:0:1.1.1.1",
    ],
)
def test_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("allowed", "fine"),
    [
        ((), False),
        (("localhost",), True),
        (("127.0.0.0/8",), True),
        (("127.0.0.1",), True),
        (("example.com",), False),
        (("10.0.0.0/8",), False),
        (("::1",), False),
    ],
)
def test_what_the_user_allows(allowed: tuple[str, ...], fine: bool) -> None:
    assert is_allowed(ipaddress.ip_address("127.0.0.1"), "localhost", allowed) is fine
    assert is_allowed(ipaddress.ip_address("::ffff:127.0.0.1"), "localhost", allowed) is fine


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("https://a.b/x", "https://a.b/y", True),
        ("http://a.b/x", "https://a.b/x", True),
        ("https://a.b/x", "https://www.a.b/x", True),
        ("https://www.a.b/x", "https://a.b/x", True),
        ("https://a.b/x", "http://a.b/x", False),
        ("https://a.b/x", "https://c.a.b/x", False),
        ("https://a.b/x", "https://a.b:8443/x", False),
        ("http://a.b:8080/x", "http://a.b/x", False),
        ("http://a.b:8080/x", "https://a.b/x", False),
        ("https://a.b/x", "https://evil.example/a.b", False),
    ],
)
def test_same_site(before: str, after: str, same: bool) -> None:
    assert same_site(read_address(before), read_address(after)) is same


def test_redirects_may_be_relative_and_must_be_web_addresses() -> None:
    start = read_address("https://a.b/x/y")
    assert str(redirected(start, "../z?q")) == "https://a.b/z?q"
    assert str(redirected(start, "//c.d/e")) == "https://c.d/e"
    with pytest.raises(ToolError):
        redirected(start, "file:///etc/passwd")
