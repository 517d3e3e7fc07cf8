"""A supplier that speaks HTTP/2 over TLS, and nothing else: the same answer to each request; it counts connections."""

import socket
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import h2.config
import h2.connection
import h2.events
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.local_server import running


class ModernSupplier(socketserver.ThreadingTCPServer):
    """One server on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, body: bytes, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.body = body
        self.connections = 0
        self.asked: list[dict[str, str]] = []
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate)
        self.tls.set_alpn_protocols(["h2"])

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Conversation(socketserver.BaseRequestHandler):
    server: ModernSupplier
    request: socket.socket

    def handle(self) -> None:
        with suppress(OSError), self.server.tls.wrap_socket(self.request, server_side=True) as encrypted:
            self.server.connections += 1
            talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
            talk.initiate_connection()
            encrypted.sendall(talk.data_to_send())
            while received := encrypted.recv(65536):
                for event in talk.receive_data(received):
                    if isinstance(event, h2.events.RequestReceived):
                        self.server.asked.append(dict(event.headers))
                        talk.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/json")])
                        talk.send_data(event.stream_id, self.server.body, end_stream=True)
                encrypted.sendall(talk.data_to_send())


def self_signed(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1 with its key into one file, and return that."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    place = folder / "supplier.pem"
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    place.write_bytes(pem)
    return place


@contextmanager
def modern(body: bytes, certificate: Path) -> Iterator[ModernSupplier]:
    """Yield a running server; in the end it is gone, with its connections."""
    with running(ModernSupplier(body, certificate)) as server:
        yield server
