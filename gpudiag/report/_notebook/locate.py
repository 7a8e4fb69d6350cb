"""Where the notebooks are: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from gpudiag.errors import ConfigError, nearest

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
