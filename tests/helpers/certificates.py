"""Certificates of a daemon on the loopback interface, made by OpenSSL's own tool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CONFIGURATION = """
[ca]
default_ca = this
[this]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = names
copy_extensions = copy
[names]
commonName = supplied
"""
#: Made for these dates: whole centuries, and years that have gone.
DATES = {False: ("20200101000000Z", "21200101000000Z"), True: ("20200101000000Z", "20210101000000Z")}


def why_not() -> str:
    return "" if shutil.which("openssl") else "no openssl"


def make(folder: Path, *, expired: bool = False) -> tuple[Path, Path]:
    """A certificate that signs itself and its key, in a folder."""
    (folder / "ca.cnf").write_text(CONFIGURATION)
    (folder / "index.txt").write_text("")
    (folder / "serial").write_text("01\n")
    begins, ends = DATES[expired]
    request = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    request += ["-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost"]
    request += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=CA:TRUE"]
    signing = ["ca", "-batch", "-selfsign", "-config", "ca.cnf", "-keyfile", "key.pem", "-in", "request.pem"]
    signing += ["-out", "certificate.pem", "-startdate", begins, "-enddate", ends, "-notext"]
    for words in (request, signing):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "certificate.pem", folder / "key.pem"
