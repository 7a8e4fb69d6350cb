"""A kernel of this very interpreter, whatever kernels are or are not installed, that leaves no trace at home.

Importing takes a kernel as long as a small report. Who makes many reports of our own notebook may therefore keep the
kernel of one for the next (:func:`keeping_kernel`): what the earlier one named is gone then, and cells count from 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

from gpudiag.interpreter import MOST_MIB, memory_mib, module_command
from gpudiag.scratch import scratch as private_folder

if TYPE_CHECKING:
    from jupyter_client.manager import KernelManager

MAX_SOCKET_FOLDER = 80
"""A path of a Unix socket holds about 100 characters."""


ANEW = "get_ipython().reset(new_session=True)"
"""Code that makes a kernel that has run a notebook as one that has not, but for what it imported."""
REPLY_S = 20.0


@contextmanager
def keeping_kernel() -> Iterator[None]:
    """Within it, the kernel of a notebook of ours is kept for the next one, unless something failed in it or it has
    become large. Afterwards no kernel is left.
    """
    kept = _Kept()
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        kept.end()


@contextmanager
def kernel_for(scratch: Path, *, own_modules: bool) -> Iterator[dict[str, Any]]:
    """What nbclient is to be given, by argument: a kernel, or what makes one. Its files are kept under ``scratch``, and
    afterwards no kernel of it is left, unless it is kept for the next one.

    Args:
        scratch: a private folder.
        own_modules: whether the notebook may import what lies in the working folder, as in JupyterLab: right for a
            notebook that somebody wrote there, never for ours, which people run inside the folder of their data.
    """
    kept = _KEPT.get()
    if kept is not None and not own_modules:
        with kept.lent() as manager:
            yield {"km": manager}
        return
    with none_left(scratch):
        yield {"kernel_manager_class": _manager_class(scratch, own_modules=own_modules)}


class _Kept:
    """The kernel that is kept, which is started when it is first lent."""

    def __init__(self) -> None:
        self._manager: Any = None
        self._clients: list[Any] = []
        self._folders = ExitStack()

    @contextmanager
    def lent(self) -> Iterator[KernelManager]:
        """The kernel as it was when it was new. One in which something failed is ended."""
        try:
            if not self._renewed():
                self.end()
                folder = self._folders.enter_context(private_folder())
                self._folders.enter_context(none_left(folder))
                self._manager = _manager_class(folder, own_modules=False, clients=self._clients)(kernel_name="python3")
            yield self._manager
        except BaseException as error:
            clear_frames(error.__traceback__)  # what a signal cut short may hold a socket, which would be waited for
            self.end()
            raise
        self._let_go()
        if memory_mib(self._manager.provisioner.pid) > MOST_MIB:
            self.end()

    def _renewed(self) -> bool:
        """Make the kernel as it was when it was new; False where there is none, or it has died or does not answer."""
        if self._manager is None or not memory_mib(self._manager.provisioner.pid):
            return False
        from jupyter_client.blocking.client import BlockingKernelClient

        client = BlockingKernelClient(connection_file=self._manager.connection_file)
        client.load_connection_file()
        client.start_channels()
        try:
            reply = client.execute(ANEW, silent=True, store_history=False, reply=True, timeout=REPLY_S)
            return bool(reply["content"]["status"] == "ok")
        except (RuntimeError, TimeoutError):
            return False
        finally:
            client.stop_channels()

    def end(self) -> None:
        """End it; the next one that is lent is a new one."""
        from jupyter_core.utils import run_sync

        manager, self._manager = self._manager, None
        with self._folders:
            if manager is not None and manager.has_kernel:
                self._let_go()
                run_sync(manager.shutdown_kernel)(now=True)

    def _let_go(self) -> None:
        for client in self._clients:
            client.stop_channels()
        self._clients.clear()


_KEPT: ContextVar[_Kept | None] = ContextVar("kept kernel", default=None)


def _manager_class(scratch: Path, *, own_modules: bool, clients: list[Any] | None = None) -> type[KernelManager]:
    """A kernel manager class for nbclient; its files are kept under ``scratch``. ``clients``: gets those it makes."""
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

        def client(self, **more: Any) -> Any:
            made = super().client(**more)
            if clients is not None:
                clients.append(made)
            return made

    return ThisInterpreter


@contextmanager
def none_left(scratch: Path) -> Iterator[None]:
    """Afterwards no kernel with files in this folder is left.

    nbclient ends a kernel that has come up; one that is starting when Ctrl-C comes would start and be told nothing, and
    perhaps nobody was told of it either: it is known by its connection file.
    """
    import psutil

    try:
        yield
    finally:
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                if any(str(scratch) in word for word in child.cmdline()):
                    child.kill()
                    child.wait()
