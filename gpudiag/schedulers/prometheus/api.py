"""The HTTP API of Prometheus: range queries, each within limits of time and size."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from gpudiag import __version__
from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._io.url import HIDDEN, shown

MOST_BYTES = 256 * 2**20
"""Of one answer, which is held in memory."""
_PIECE_BYTES = 2**16
_SAID_CHARACTERS = 300
_WRITABLE = re.compile(r"[\x21-\x7e]+")
"""What may stand in a header. Python's own error for anything else would show the token."""


@dataclass(frozen=True)
class Access:
    """What a server asks for: a bearer token, or a user and a password. Neither is shown, also not by ``repr``."""

    token: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """Raises ConfigError for a token that no header can hold."""
        if self.token:
            if not _WRITABLE.fullmatch(self.token):
                raise ConfigError("the bearer token holds blanks or characters beyond ASCII; expected one word.")
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            both = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {both}"}
        return {}

    def without(self, text: str) -> str:
        """A text without the token and the password, which a server may repeat."""
        for secret in filter(None, (self.token, self.password)):
            text = text.replace(secret, HIDDEN)
        return text


@dataclass(frozen=True)
class Prometheus:
    """A server. ``timeout_s``: for each answer as a whole.

    Raises ConfigError for a URL that is none of HTTP, or that holds a user, a password or options.
    """

    url: str
    access: Access = Access()
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:  # a port that is no number
            usable = False
        if "@" in self.url or (usable and (parts.query or parts.fragment)):
            raise ConfigError(
                f"{shown(self.url)}: holds a user, a password or options; give the address alone, and what it asks for "
                "in GPUDIAG_PROMETHEUS_TOKEN, or GPUDIAG_PROMETHEUS_USER and GPUDIAG_PROMETHEUS_PASSWORD."
            )
        if not usable or not _WRITABLE.fullmatch(self.url):
            raise ConfigError(f"{shown(self.url)}: is no address; expected one such as http://prometheus:9090.")

    def query_range(self, query: str, start_s: float, end_s: float, step_s: int) -> list[Mapping[str, Any]]:
        """The series of a query at ``start_s``, each ``step_s`` after it, up to ``end_s``, as the API gives them.

        Raises InputError, in one sentence, for everything else that may be answered.
        """
        asked = {"query": query, "start": str(round(start_s, 3)), "end": str(round(end_s, 3)), "step": step_s}
        answer = self._answer(asked)
        result = answer.get("data")
        series = result.get("result") if isinstance(result, dict) and result.get("resultType") == "matrix" else None
        if answer.get("status") != "success" or not isinstance(series, list):
            raise self._error("did not answer as the API of Prometheus does; give the address of Prometheus itself.")
        return [one for one in series if isinstance(one, dict) and isinstance(one.get("metric"), dict)]

    def _answer(self, asked: Mapping[str, object]) -> Mapping[str, Any]:
        request = Request(
            f"{self.url.rstrip('/')}/api/v1/query_range",
            data=urlencode(asked).encode(),
            headers={"User-Agent": f"gpudiag/{__version__}", "Accept": "application/json"} | self.access.headers(),
        )
        until = time.monotonic() + self.timeout_s
        try:
            # Neither the proxy of some variable nor another host is shown the token.
            with build_opener(ProxyHandler({}), _NoRedirect()).open(request, timeout=self.timeout_s) as response:
                body = self._read(response, until)
        except HTTPError as error:
            with error:
                raise self._refused(error, until) from None
        except TimeoutError:
            raise self._late() from None
        except (URLError, HTTPException, OSError) as error:
            why = getattr(error, "reason", None) or error
            if isinstance(why, TimeoutError):
                raise self._late() from None
            said = str(getattr(why, "strerror", None) or why or type(why).__name__)
            raise self._error(f"cannot be asked ({said[:_SAID_CHARACTERS]}); check the address.") from None
        return _object(body)

    def _read(self, response: IO[bytes] | HTTPResponse, until: float) -> bytes:
        """The body, within the limits: a server that sends a byte now and then keeps each single read alive."""
        pieces: list[bytes] = []
        size = 0
        read = getattr(response, "read1", response.read)
        while piece := read(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise self._error("sent more than 256 MiB at once; ask for less with --start, --end or --step.")
            if time.monotonic() > until:
                raise self._late()
        if getattr(response, "length", 0):  # what is still to come of a body whose size was stated
            raise self._error("ended in the middle of its answer; try again.")
        return b"".join(pieces)

    def _refused(self, error: HTTPError, until: float) -> InputError:
        if error.code in range(300, 400):
            place = str(error.headers.get("Location", ""))
            return self._error(
                f"leads to another address (HTTP {error.code}), {shown(place)[:_SAID_CHARACTERS]}, which is not "
                "followed; give the final one with --url."
            )
        try:
            said = _object(self._read(error, until))
        except (OSError, HTTPException, InputError):
            said = {}
        words = " ".join(str(said.get(key, "")) for key in ("errorType", "error")).strip()
        why = f": {' '.join(words.split())[:_SAID_CHARACTERS]}" if words else ""
        if error.code in (401, 403) and not self.access.headers():
            why += (
                "; it asks who you are: set GPUDIAG_PROMETHEUS_TOKEN, or GPUDIAG_PROMETHEUS_USER and "
                "GPUDIAG_PROMETHEUS_PASSWORD"
            )
        return self._error(f"answered with HTTP {error.code}{why}.")

    def _late(self) -> InputError:
        return self._error(
            f"did not answer within {self.timeout_s:g} s; give it longer with --timeout, or ask for less with --start, "
            "--end or --step."
        )

    def _error(self, what: str) -> InputError:
        return InputError(self.access.without(f"{shown(self.url)}: {what}"))


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """None: the answer itself is then the error."""


def _object(body: bytes) -> dict[str, Any]:
    """The object in a body; an empty one for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
