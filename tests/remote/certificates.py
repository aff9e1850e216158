"""An authority of the tests' own, and certificates that it signs."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Authority:
    folder: Path

    @classmethod
    def new(cls, folder: Path) -> "Authority":
        folder.mkdir(exist_ok=True)
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=Tests"),
            *("-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem")),
        )
        return cls(folder)

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def sign(self, name: str) -> Path:
        """A certificate for 127.0.0.1 with its key, in one file."""
        key, asked, signed = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(asked)),
        )
        _openssl(
            *("x509", "-req", "-days", "2", "-in", str(asked), "-copy_extensions", "copy"),
            *("-CA", str(self.file), "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial"),
            *("-out", str(signed)),
        )
        both = self.folder / f"{name}.pem"
        both.write_bytes(signed.read_bytes() + key.read_bytes())
        return both

    def server(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """How a server on 127.0.0.1 speaks TLS."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.sign("server"))
        if wants_client:
            made.verify_mode = ssl.CERT_REQUIRED
            made.load_verify_locations(self.file)
        return made


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=30)
