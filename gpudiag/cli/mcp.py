"""``gpudiag mcp``: the diagnosis as tools of a coding assistant."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from gpudiag.errors import ConfigError


def mcp(
    folders: Annotated[
        list[str], typer.Argument(metavar="DIR...", help="folders of runs; nothing outside of them is read")
    ],
) -> None:
    """Serve the Model Context Protocol on standard input and output: list, diagnose, explain, compare, what-if.

    For a coding assistant, which starts it itself. Reads only; opens no storage URL.
    """
    from gpudiag.agents.folders import Folders

    held = Folders.of(folders)
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise ConfigError(
            "the SDK of the Model Context Protocol is not installed in version 2; "
            "install it with: pip install 'gpudiag[mcp]'"
        )
    from gpudiag.agents.server import serve

    serve(held)
