"""A kernel of this very interpreter, whatever kernels are or are not installed, that leaves no trace at home."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.interpreter import module_command

if TYPE_CHECKING:
    from jupyter_client.manager import KernelManager

MAX_SOCKET_FOLDER = 80
"""A path of a Unix socket holds about 100 characters."""


@contextmanager
def kernel_manager(scratch: Path, *, own_modules: bool) -> Iterator[type[KernelManager]]:
    """A kernel manager class for nbclient; its files are kept under ``scratch``. Afterwards no kernel of it is left.

    nbclient ends a kernel that has come up; one that is starting when Ctrl-C comes would start and be told nothing, and
    perhaps nobody was told of it either: it is known by its connection file.

    Args:
        scratch: a private folder.
        own_modules: whether the notebook may import what lies in the working folder, as in JupyterLab: right for a
            notebook that somebody wrote there, never for ours, which people run inside the folder of their data.
    """
    import psutil
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    careful = [] if own_modules else ["--InteractiveShellApp.ignore_cwd=True"]
    spec = KernelSpec(
        argv=module_command("ipykernel_launcher", ["-f", "{connection_file}", *careful]),
        display_name="gpudiag",
        language="python",
        env={
            "IPYTHONDIR": str(scratch / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(scratch),
            "TMPDIR": str(scratch),
        },
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

    try:
        yield ThisInterpreter
    finally:
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                if any(str(scratch) in word for word in child.cmdline()):
                    child.kill()
                    child.wait()
