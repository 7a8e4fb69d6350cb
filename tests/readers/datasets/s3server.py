"""A server that speaks as much of S3 as reading takes: lists of a bucket, heads and ranges of objects.

It stands for MinIO and the like, wherever a test may not install one. Every request must be signed with the key that it
was started with.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY = "AKIDEXAMPLE"
MODIFIED = "2026-03-01T00:00:00.000Z"


class _Handler(BaseHTTPRequestHandler):
    top: Path
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._object(body=False)

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        bucket, _, key = unquote(where.path).lstrip("/").partition("/")
        if key:
            self._object(body=True)
        elif not self._signed():
            self._answer(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
        elif not (self.top / bucket).is_dir():
            self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
        else:
            self._answer(200, self._listed(bucket, parse_qs(where.query)))

    def _listed(self, bucket: str, asked: dict[str, list[str]]) -> bytes:
        prefix, delimiter = asked.get("prefix", [""])[0], asked.get("delimiter", [""])[0]
        top = self.top / bucket
        keys = sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(prefix)]
        folders: dict[str, None] = {}
        if delimiter:
            folders = dict.fromkeys(
                prefix + key[len(prefix) :].partition("/")[0] + "/" for key in keys if "/" in key[len(prefix) :]
            )
            keys = [key for key in keys if "/" not in key[len(prefix) :]]
        keys = keys[: int(asked.get("max-keys", ["1000"])[0])]
        held = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{MODIFIED}</LastModified><ETag>x</ETag>"
            f"<Size>{(top / key).stat().st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key in keys
        )
        held += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders)
        text = (
            f'<?xml version="1.0"?><ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>'
            f"<KeyCount>{len(keys) + len(folders)}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
            f"{held}</ListBucketResult>"
        )
        return text.encode()

    def _object(self, *, body: bool) -> None:
        path = self.top / unquote(urlsplit(self.path).path).lstrip("/")
        if not self._signed():
            self._answer(403, b"", body=body)
        elif not path.is_file():
            self._answer(404, b"", body=body)
        else:
            data = path.read_bytes()
            found = re.fullmatch(r"bytes=(\d+)-(\d+)?", self.headers.get("Range", ""))
            low, high = (int(found[1]), int(found[2] or len(data) - 1)) if found else (0, len(data) - 1)
            part = data[low : high + 1]
            more = {"Content-Range": f"bytes {low}-{low + len(part) - 1}/{len(data)}"} if found else {}
            self._answer(206 if found else 200, part, body=body, **more)

    def _signed(self) -> bool:
        return f"Credential={KEY}/" in self.headers.get("Authorization", "")

    def _answer(self, status: int, data: bytes, *, body: bool = True, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), "ETag": '"x"', **headers}.items():
            self.send_header(name, value)
        self.send_header("Last-Modified", "Sun, 01 Mar 2026 00:00:00 GMT")
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@contextmanager
def s3_server(top: Path) -> Iterator[str]:
    """The URL of a server whose buckets are the folders of ``top``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"top": top}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
