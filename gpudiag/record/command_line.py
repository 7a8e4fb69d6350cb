"""A command as the header of a recording may show it: without what looks like a secret in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_SECRET = r"pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|auth|(?:api|access|private|secret)[_-]?key|key"
_NAME = re.compile(rf"(?i)(?:^|[_.-])(?:{_SECRET})$|^-+(?:{_SECRET})$|(?:password|secret|token|apikey)$")
_URL = re.compile(r"(://[^:/@\s]*:).+@")
_IS_LINE = re.compile(r"^(?![\w.+=-]*://).*\s", re.DOTALL)
_URL_IN_LINE = re.compile(r"(://[^:/@\s]*:)\S+@")
_QUERY = re.compile(r"(?i)([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)[^&\s]*")
_WORD = rf"(?:[\w.-]*(?:password|secret|token|apikey|authorization)|(?:[\w.-]*[_.-])?(?:{_SECRET}))"
_PAIR = re.compile(
    rf"""(?i)((?<![\w.-]){_WORD}["']?\s*[=:]\s*|(?<![\w.-])-{_WORD}\s+(?!-))"""
    r"""(?:(?:bearer|basic|token)\s+)?(?:"[^"]*"|'[^']*'|[^\s"';&|)},]+)"""
)
_HIDDEN = "__hidden__"  # needs no quotes, so that the quotes of a shell stand where they would


def shown(arguments: Sequence[str]) -> str:
    """The command in one line of shell. The value of an option or a variable whose name says password, secret, token,
    key or the like, and the password of a URL, is ``***``, within an argument as well: ``bash -c`` takes a whole line.
    """
    out: list[str] = []
    hide = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        is_line = _IS_LINE.match(argument)
        if hide and not argument.startswith("--"):
            out.append(_HIDDEN)
        elif equals and not is_line and _NAME.search(name):
            out.append(f"{name}={_HIDDEN}")
        else:
            without = (_URL_IN_LINE if is_line else _URL).sub(rf"\1{_HIDDEN}@", argument)
            out.append(_PAIR.sub(rf"\1{_HIDDEN}", _QUERY.sub(rf"\1{_HIDDEN}", without)))
        hide = argument.startswith("-") and not equals and bool(_NAME.search(argument))
    return shlex.join(out).replace(_HIDDEN, "***")
