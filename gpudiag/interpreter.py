"""Other processes of this Python, which import nothing from the folder they are started in.

People start gpudiag inside the folder of their data. A file ``pandas.py`` or ``warnings.py`` that lies there is data,
but ``python -m`` puts the working folder first on the search path, so that it would run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def module_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that runs a module with this interpreter, with the working folder kept off its search path."""
    return [sys.executable, "-P", "-m", module, *arguments]
