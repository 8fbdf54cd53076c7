"""Which proxy is used for an address, whatever the variables hold."""

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.web import proxies
from tui_agent.web.proxies import read_proxies

FAR = "https://api.example.com/v1"


@pytest.fixture
def _with_socks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "find_spec", lambda _name: object())


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, FAR, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, FAR, "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://api.example.com/v1", None),
        ({"https_proxy": "", "HTTPS_PROXY": "http://proxy:3128"}, FAR, None),
        ({"https_proxy": "small:1", "HTTPS_PROXY": "large:2"}, FAR, "http://small:1"),
        ({"ALL_PROXY": " 'proxy.corp:8080/' "}, FAR, "http://proxy.corp:8080"),
        ({"ALL_PROXY": "HTTP://Me:p%40ss@Proxy.Corp"}, FAR, "http://Me:p%40ss@proxy.corp"),
        ({"ALL_PROXY": "http://[fd00::1]:3128"}, FAR, "http://[fd00::1]:3128"),
        ({"HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"}, "http://far.example/", None),
        *(({"ALL_PROXY": "http://proxy:1"}, url, None) for url in (
            "http://127.0.0.1:8080/v1", "http://localhost:11434", "http://[::1]:1/", "http://llama.localhost/",
            "http://127.9.9.9/", "http://0.0.0.0:8000/v1", "http://LOCALHOST./",
        )),
    ],
)  # fmt: skip
def test_the_proxy_of_an_address(environ: dict[str, str], url: str, proxy: str | None) -> None:
    found = read_proxies(environ)
    assert (found.of(url), found.problems) == (proxy, ())


@pytest.mark.usefixtures("_with_socks")
@pytest.mark.parametrize(
    ("value", "proxy"),
    [
        ("socks://127.0.0.1:1080/", "socks5://127.0.0.1:1080"),
        ("socks5://me:pw@proxy", "socks5://me:pw@proxy"),
        ("SOCKS5H://proxy:9050", "socks5h://proxy:9050"),
    ],
)
def test_a_socks_proxy(value: str, proxy: str) -> None:
    assert read_proxies({"all_proxy": value}).of(FAR) == proxy


def test_a_socks_proxy_without_its_package_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxies, "find_spec", lambda _name: None)
    found = read_proxies({"ALL_PROXY": "socks://127.0.0.1:1/", "HTTPS_PROXY": "http://proxy:1"})
    assert found.of(FAR) == "http://proxy:1"
    assert found.of("http://far.example/") is None
    (problem,) = found.problems
    assert problem.startswith("ALL_PROXY is ignored: a SOCKS proxy needs the package socksio (")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks4://proxy:1", "“socks4://proxy:1”"),
        ("ftp://me:geheim@proxy", "“ftp://…@proxy”"),
        ("http://", "“http://”"),
        ("http://proxy:99999", "“http://proxy:99999”"),
        ("http://[::1", "“http://[::1”"),
        ("me:geheim@", "“…@”"),
        ("http://a b", "“http://a b”"),
    ],
)
def test_what_is_no_proxy_is_left_out_and_said_without_its_password(value: str, said: str) -> None:
    found = read_proxies({"HTTPS_PROXY": value})
    assert found.of(FAR) is None
    (problem,) = found.problems
    assert problem == f"HTTPS_PROXY is ignored: {said} is not an HTTP or SOCKS 5 proxy."


@pytest.mark.parametrize(
    ("entry", "near", "far"),
    [
        ("example.com", "https://api.example.com/", "https://badexample.com/"),
        ("example.com", "https://example.com/", "https://example.com.evil.org/"),
        (".example.com", "https://a.b.example.com/", "https://example.org/"),
        ("*.example.com", "https://api.example.com/", "https://example.org/"),
        ("EXAMPLE.com", "https://Api.Example.COM/", "https://example.org/"),
        ("example.com:8443", "https://example.com:8443/", "https://example.com/"),
        ("example.com:443", "https://example.com/", "http://example.com/"),
        ("10.0.0.0/8", "https://10.1.2.3/", "https://11.0.0.1/"),
        ("10.1.2.3/8", "https://10.9.9.9/", "https://10.example.com/"),
        ("192.168.1.7", "https://192.168.1.7/", "https://192.168.1.70/"),
        ("10.*", "https://10.1.2.3/", "https://110.1.2.3/"),
        ("fe80::/10", "https://[fe80::5]/", "https://[2001:db8::1]/"),
        ("[fe80::]/10", "https://[fe80::5]/", "https://[2001:db8::1]/"),
        ("[2001:db8::1]", "https://[2001:db8::1]:9/", "https://[2001:db8::2]/"),
        ("[2001:db8::1]:9", "https://[2001:db8::1]:9/", "https://[2001:db8::1]/"),
        ("2001:db8::1", "https://[2001:db8:0::1]/", "https://[2001:db8::2]/"),
        ("https://example.com", "https://example.com/", "http://example.com/"),
        ("<local>", "https://intranet/", "https://intra.net/"),
        ("münchen.example", "https://xn--mnchen-3ya.example/", "https://munchen.example/"),
        ("a.org, b.org c.org;", "https://b.org/", "https://d.org/"),
        ("*", "https://anything.example/", ""),
    ],
)
def test_what_no_proxy_exempts(entry: str, near: str, far: str) -> None:
    found = read_proxies({"ALL_PROXY": "http://proxy:1", "NO_PROXY": entry})
    assert found.of(near) is None
    assert not far or found.of(far) == "http://proxy:1"


@pytest.mark.parametrize(
    "entry", ["fe80::/999", "http://", "a/b", "[]", "\x1b", "ftp://example.com", "1.2.3.4/x"]
)
def test_an_entry_that_says_nothing_is_left_out_and_said(entry: str) -> None:
    found = read_proxies({"ALL_PROXY": "http://proxy:1", "NO_PROXY": f"{entry},example.com"})
    assert found.of("https://example.com") is None
    assert found.of("https://api.example.org/") == "http://proxy:1"
    assert [problem.startswith("NO_PROXY: “") for problem in found.problems] == [True]


WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["http://", "socks://", "socks5h://", "//", "@", ":", "[", "]", "::1", "%", "*", ".", "/8", "fe80::/10",
         "\udcff", "proxy", "10.0.0.0", "localhost", ":80", ":0", ":99999", "a" * 70,
         "ü", " ", ",", "?", "#", "\\", "'"]
    ),
)  # fmt: skip
VALUES = st.lists(WORDS, max_size=6).map("".join)


@given(
    VALUES,
    VALUES,
    VALUES,
    st.sampled_from([FAR, "http://127.0.0.1:1/", "http://[::1]/", "x", "http://[", ""]),
)
def test_no_proxy_variables_end_anything(https: str, every: str, none: str, url: str) -> None:
    """What is found can be used by both libraries that connections are made with."""
    found = read_proxies({"HTTPS_PROXY": https, "all_proxy": every, "NO_PROXY": none})
    proxy = found.of(url)
    if proxy is not None:
        assert url == FAR
        assert str(httpx.Proxy(proxy).url.scheme) in {"http", "https", "socks5", "socks5h"}
        assert httpx2.Proxy(proxy).url.host
    for problem in found.problems:
        assert problem.endswith((".", ")."))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.variables().items():
            patch.setenv(name, value)
        if not found.variables().get("https_proxy", "").startswith("socks"):
            httpx.AsyncClient()
