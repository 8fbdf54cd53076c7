"""Issues TLS certificates with which the sandbox's proxy intercepts connections to some hosts.

These are the hosts named in ``[sandbox.mask]``: in requests to them the proxy replaces a
credential's placeholder with its value. Nothing stays on disk; a host's key is in a temporary file
only while it is being loaded.
"""

import datetime as dt
import ipaddress
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.lazy import cached_property
from tui_agent.path_checks import is_file
from tui_agent.word_lists import in_order

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

LIFETIME = dt.timedelta(days=30)
"""How long the certificates are valid, which is longer than most sessions last."""

_REPLACING = in_order(
    """
    SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT AWS_CA_BUNDLE
    CARGO_HTTP_CAINFO NIX_SSL_CERT_FILE
    """
)
"""Environment variables that name a file with all certificates that a program trusts."""

_ADDING = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
"""Environment variables that name a file with certificates to trust besides the usual ones."""

_OF_SYSTEMS = in_order(
    """
    /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem
    /etc/ssl/cert.pem
    """
)
_NAME = "tui-agent sandbox"
_LEAF_NAME = "tui-agent sandbox proxy"


class Authority:
    """A certificate authority for one sandbox. Its private key stays in this program's memory."""

    def __init__(self) -> None:
        self._contexts: dict[str, ssl.SSLContext] = {}

    @cached_property
    def certificate(self) -> bytes:
        """The certificate of the authority, in PEM format."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._own[1].public_bytes(Encoding.PEM)

    def context(self, host: str) -> ssl.SSLContext:
        """Return a TLS context that acts as ``host`` with a certificate of this authority.

        This takes a few milliseconds for a new host.
        """
        if host not in self._contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            # Write the key to a temporary file, because the library can load keys only from files.
            with tempfile.NamedTemporaryFile() as file:
                file.write(self._issued(host))
                file.flush()
                context.load_cert_chain(file.name)
            self._contexts[host] = context
        return self._contexts[host]

    @cached_property
    def _own(self) -> tuple["ec.EllipticCurvePrivateKey", "x509.Certificate"]:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            _builder(_named(_NAME), _named(_NAME), key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return key, builder.sign(key, hashes.SHA256())

    def _issued(self, host: str) -> bytes:
        """Return a new key and a certificate for a host, in PEM format."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.x509.oid import ExtendedKeyUsageOID

        own_key, own = self._own
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(own_key.public_key())
        signed = (
            _builder(_named(_LEAF_NAME), own.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(identifier, critical=False)
            .sign(own_key, hashes.SHA256())
        )
        held = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return held + signed.public_bytes(Encoding.PEM)


def _named(text: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: "x509.Name", issuer: "x509.Name", key: "ec.EllipticCurvePublicKey"
) -> "x509.CertificateBuilder":
    from cryptography import x509

    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def bundle(authority: Authority, environ: Mapping[str, str]) -> bytes:
    """Return the certificates for commands, in PEM format: the usual ones and the authority's.

    The usual certificates are in the files that variables in ``environ`` name. The system's
    certificates are added unless one of these variables replaces them.
    """
    texts = [path.read_bytes().strip() for path in _trusted(environ)]
    return b"\n".join([*texts, authority.certificate])


def certificate_variables(place: Path) -> dict[str, str]:
    """Return the environment variables that make programs trust the certificates in a file."""
    return dict.fromkeys((*_REPLACING, *_ADDING), str(place))


def _trusted(environ: Mapping[str, str]) -> Iterator[Path]:
    named = [environ[name] for name in (*_REPLACING, *_ADDING) if environ.get(name)]
    yield from (Path(name) for name in dict.fromkeys(named) if is_file(Path(name)))
    if any(environ.get(name) for name in _REPLACING):
        return
    import certifi

    default = ssl.get_default_verify_paths().cafile
    usual = (*([default] if default else []), *_OF_SYSTEMS, certifi.where())
    yield next(Path(name) for name in usual if is_file(Path(name)))
