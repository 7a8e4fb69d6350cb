"""Where the notebooks are: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import ConfigError, nearest

if TYPE_CHECKING:
    from nbformat import NotebookNode

PACKAGE = Path(__file__).resolve().parent.parent.parent
FOLDERS = (PACKAGE / "notebooks", PACKAGE.parent / "notebooks")


def shipped_notebooks() -> dict[str, Path]:
    """The notebooks that come with the package, by name."""
    return {file.stem: file for folder in reversed(FOLDERS) for file in sorted(folder.glob("*.ipynb"))}


def find_notebook(name_or_path: str | Path) -> Path:
    """The notebook at that path, or the shipped one of that name.

    Raises ConfigError with the nearest name.
    """
    path = Path(name_or_path)
    if path.suffix == ".ipynb" and path.is_file():
        return path
    shipped = shipped_notebooks()
    name = str(name_or_path).removesuffix(".ipynb")
    if name not in shipped:
        raise ConfigError(f"there is no notebook '{name_or_path}'; {nearest(name, shipped)}")
    return shipped[name]


def is_shipped(notebook: Path) -> bool:
    """Whether this very file comes with the package."""
    return notebook.resolve().parent in FOLDERS


def read_notebook(notebook: Path) -> NotebookNode:
    """The notebook, with a kernel named. Raises ConfigError where the file is none."""
    import nbformat

    try:
        node = nbformat.read(notebook, as_version=4)
    except Exception as error:
        raise ConfigError(f"{notebook}: is not a notebook ({type(error).__name__}: {error}).") from error
    node.metadata.setdefault("kernelspec", {"name": "python3", "display_name": "Python 3", "language": "python"})
    node.metadata.setdefault("language_info", {"name": "python"})
    return node
