"""A stand-in for the server of W&B, as far as its client asks for a run, writes its summary and uploads files.

What it is asked, and how it must answer, was recorded from wandb 0.31.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RUN = {
    "id": "UnVuOnYx",
    "name": "abc123",
    "displayName": "happy-1",
    "state": "failed",
    "tags": ["mine"],
    "config": json.dumps({"lr": {"value": 0.1, "desc": None}}),
    "createdAt": "2026-01-01T00:00:00Z",
    "heartbeatAt": "2026-01-01T00:10:00Z",
    "description": "",
    "notes": "",
    "systemMetrics": "{}",
    "historyLineCount": 3,
    "historyKeys": {"lastStep": 2},
    "user": {"name": "n", "username": "u"},
    "projectId": "1",
    **dict.fromkeys(("sweepName", "group", "jobType", "commit"), None),
    "readOnly": False,
}


class WandbServer:
    """Run e/p/abc123: its ``summary``, its ``files`` by path, and the names of the ``mutations`` that were asked."""

    def __init__(self) -> None:
        self.summary: dict[str, Any] = {"loss": 0.1, "gpudiag": {"memory_peak_pct": 99.0, "verdict": "critical"}}
        self.files: dict[str, bytes] = {}
        self.mutations: list[str] = []

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        kind, name = re.findall(r"(query|mutation)\s+(\w+)", query)[0]
        if kind == "mutation":
            self.mutations.append(name)
        if name == "Run":
            run = {**RUN, "summaryMetrics": json.dumps(self.summary)} if variables["name"] == RUN["name"] else None
            return {"project": {"internalId": "1", "run": run}}
        if name == "UpsertBucket":
            assert set(variables) == {"id", "summaryMetrics"}
            self.summary = json.loads(variables["summaryMetrics"])
            return {"upsertBucket": {"bucket": {"id": RUN["id"]}}}
        if name == "CreateRunFiles":
            files = [{"name": one, "uploadUrl": f"/files/{one}"} for one in variables["files"]]
            return {"createRunFiles": {"runID": RUN["id"], "uploadHeaders": [], "files": files}}
        if name == "RunFiles":
            node = {"id": "f", "name": variables["fileNames"][0], "url": "/f", "directUrl": "", "sizeBytes": "1"}
            node |= {"mimetype": "", "updatedAt": None, "md5": ""}
            page = {"endCursor": "c", "hasNextPage": False}
            files = {"edges": [{"node": node, "cursor": "c"}], "pageInfo": page}
            return {"project": {"internalId": "1", "run": {"fileCount": 1, "files": files}}}
        viewer = {"id": "1", "entity": "e", "username": "u", "flags": "{}", "teams": {"edges": []}, "email": "a@b.c"}
        return {"viewer": viewer, "serverInfo": {"features": [], "cliVersionInfo": {}}}


@contextmanager
def serving() -> Iterator[tuple[WandbServer, str]]:
    """The server and its address on this machine."""
    held = WandbServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            asked = json.loads(self._body())
            self._reply(json.dumps({"data": held.answer(asked["query"], asked.get("variables") or {})}).encode())

        def do_PUT(self) -> None:
            held.files[self.path.removeprefix("/files/")] = self._body()
            self._reply(b"")

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def _reply(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield held, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
