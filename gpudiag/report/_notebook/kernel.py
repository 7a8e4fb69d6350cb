"""A kernel of this very interpreter, whatever kernels are or are not installed, that leaves no trace at home."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.interpreter import module_command

if TYPE_CHECKING:
    from jupyter_client.manager import KernelManager

MAX_SOCKET_FOLDER = 80
"""A path of a Unix socket holds about 100 characters."""


def kernel_manager(scratch: Path, *, own_modules: bool) -> type[KernelManager]:
    """A kernel manager class for nbclient; its files are kept under ``scratch``.

    Args:
        scratch: a private folder.
        own_modules: whether the notebook may import what lies in the working folder, as in JupyterLab: right for a
            notebook that somebody wrote there, never for ours, which people run inside the folder of their data.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    careful = [] if own_modules else ["--InteractiveShellApp.ignore_cwd=True"]
    spec = KernelSpec(
        argv=module_command("ipykernel_launcher", ["-f", "{connection_file}", *careful]),
        display_name="gpudiag",
        language="python",
        env={"IPYTHONDIR": str(scratch / "ipython"), "JUPYTER_RUNTIME_DIR": str(scratch)},
    )

    # Sockets in the private folder rather than TCP ports, which every user of the machine could listen to.
    sockets = sys.platform != "win32" and len(str(scratch)) <= MAX_SOCKET_FOLDER

    class ThisInterpreter(AsyncKernelManager):
        def _transport_default(self) -> str:
            return "ipc" if sockets else "tcp"

        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

        def _connection_file_default(self) -> str:
            return str(scratch / "kernel.json")

    return ThisInterpreter
