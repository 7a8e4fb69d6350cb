"""A JupyterLab as `gpudiag lab` starts it, with settings, kernels and a port of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

TOKEN = "gpudiag-test"
PATIENCE_S = 90
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},  # every cell is drawn, seen or not
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},  # saving asks what to do where a file has changed
}


@dataclass
class Lab:
    """``folder`` holds the copies of the notebooks, ``log`` what the server said. ``address``: "" until it answers."""

    server: subprocess.Popen[bytes]
    runtime: Path
    folder: Path
    log: Path
    address: str = ""

    @classmethod
    def start(cls, run: Path, home: Path) -> Lab:
        """Start the server on copies with ``run`` filled in; everything that it writes is below ``home``."""
        runtime, folder = home / "runtime", home / "mine"
        (home / "app").mkdir(parents=True)
        (home / "app" / "overrides.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
        places = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
        # pytest's own settings of plotting and of warnings are not a user's.
        env = {**os.environ, **places, "IPYTHONDIR": str(home / "ipython"), "MPLBACKEND": "", "PYTHONWARNINGS": ""}
        command = [sys.executable, "-m", "gpudiag", "lab", str(run), "-o", str(folder), "--"]
        command += ["--no-browser", "--ip=127.0.0.1", "--allow-root", f"--IdentityProvider.token={TOKEN}"]
        command += ["--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"]
        command += [f"--LabApp.app_settings_dir={home / 'app'}"]
        log = home / "lab.log"
        with log.open("wb") as said:
            server = subprocess.Popen(command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        return cls(server, runtime, folder, log)

    def wait(self) -> None:
        """Until it answers, at the port that it has found free and written down. Raises AssertionError with its log."""
        limit = time.monotonic() + PATIENCE_S
        notes = self.runtime / f"jpserver-{self.server.pid}.json"
        while time.monotonic() < limit:
            assert self.server.poll() is None, self.log.read_text()
            with suppress(OSError, ValueError):
                self.address = f"http://127.0.0.1:{json.loads(notes.read_text())['port']}"
                urlopen(f"{self.address}/api?token={TOKEN}", timeout=5).close()
                return
            time.sleep(0.2)
        raise AssertionError(f"JupyterLab did not answer in {PATIENCE_S} s: {self.log.read_text()}")

    def end(self) -> None:
        """The server, which ends its kernels; never anybody else's."""
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
