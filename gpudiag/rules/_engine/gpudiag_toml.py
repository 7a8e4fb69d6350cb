"""gpudiag.toml: what a team wants of every report.

    docs_url = "https://docs.example.org/gpudiag"   # where the documentation is served: findings link to their checks

    [[suppress]]
    rule = "loader-workers-cores"
    reason = "the host is shared: six cores are not ours"
    run = "nightly-*"                 # pattern of the run's name; without it every run
    until = 2027-01-31                # last day on which it holds; without it for good

It lies beside run.toml or in the working folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from gpudiag.errors import ConfigError, InputNotFound, nearest
from gpudiag.readers._io.url import shown
from gpudiag.rules._engine.suppression import Suppression, check_suppressions

FILE_NAME = "gpudiag.toml"
_PATH = r"[A-Za-z0-9/._~%+,=:-]*"
DOCS_URL = rf"^(https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?(/{_PATH})?|file:///{_PATH})$"
"""An address without a user, a query, and any character that HTML, Markdown or a terminal could take for its own."""
_EXPECTED = (
    "expected an address such as https://docs.example.org/gpudiag (https:, http: or file:///, in small letters) "
    "without user, query and fragment, of letters, digits and /._~%+,=:-"
)


def _docs_url(value: object) -> str:
    address = value.strip() if isinstance(value, str) else None
    if address is None or (address and not re.fullmatch(DOCS_URL, address)):
        raise ValueError(_EXPECTED)
    return address.rstrip("/")


class GpudiagToml(BaseModel):
    """The content of gpudiag.toml; every key is optional."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    docs_url: Annotated[str, BeforeValidator(_docs_url)] = ""
    suppress: tuple[Suppression, ...] = ()


def read_gpudiag_toml(path: str | Path, rule_ids: Iterable[str]) -> GpudiagToml:
    """Read and check one gpudiag.toml.

    Raises InputNotFound, or ConfigError that names the entry and what is wrong with it; ids must be among ``rule_ids``.
    """
    path = Path(path)
    if not path.is_file():
        raise InputNotFound(f"{path}: no such file; expected a {FILE_NAME} with [[suppress]] entries or a docs_url.")
    try:
        read = GpudiagToml.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML ({error}).") from error
    except ValidationError as error:
        raise ConfigError(_explain(error.errors()[0], str(path))) from error
    check_suppressions(read.suppress, rule_ids, str(path))
    return read


def _explain(item: Any, where: str) -> str:
    """One sentence for one pydantic complaint."""
    keys = [str(part) for part in item["loc"]]
    dotted = ".".join(keys)
    if item["type"] == "extra_forbidden":
        model: type[BaseModel] = GpudiagToml if len(keys) == 1 else Suppression
        return f"{where}: unknown key '{dotted}'; {nearest(keys[-1], model.model_fields)}"
    if item["type"] == "missing":
        return f"{where}: '{dotted}' is missing; each [[suppress]] entry needs a rule and a reason."
    said = item["msg"].removeprefix("Value error, ")
    given = item["input"]
    return f"{where}: key '{dotted}': {said}, but got {shown(given) if isinstance(given, str) else given!r}."
