"""Notebooks on many inputs in one kernel: starting a kernel takes longer than most of the runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from gpudiag.report._notebook.copies import copy_all
from gpudiag.report._notebook.kernel import kernel_for


@dataclass(frozen=True)
class Said:
    """What the cells of one input left: every text in their outputs, and what went to stderr."""

    text: str
    stderr: str
    pictures: int

    @property
    def complaints(self) -> list[str]:
        return complaints(f"{self.text}\n{self.stderr}")


def complaints(text: str) -> list[str]:
    """Lines that nobody should find in a report."""
    bad = re.compile(r"Traceback|\w+Warning\b|\bnan\b|\bNaT\b|<NA>|object at 0x")
    return [line.strip()[:200] for line in text.splitlines() if bad.search(line)]


def run_chain(asked: Mapping[str, Mapping[str, Path]], folder: Path) -> dict[tuple[str, str], Said]:
    """Run each notebook on those of its runs that have data for it, as `gpudiag lab` fills it in: by both their names.

    Each finds nothing that one before it defined. Raises nbclient's CellExecutionError where a cell fails.
    """
    chain = nbformat.v4.new_notebook()
    copies: dict[Path, dict[str, Path]] = {}
    for name, runs in asked.items():
        for case, run in runs.items():
            if run not in copies:
                copies[run] = {path.stem: path for path in copy_all(folder / f"{len(copies)}", run)}
            if name in copies[run]:
                chain.cells.append(nbformat.v4.new_code_cell("%reset -f"))
                for cell in nbformat.read(copies[run][name], as_version=4).cells:
                    cell.metadata.case = [name, case]
                    chain.cells.append(cell)
    for number, cell in enumerate(chain.cells):
        cell.id = f"{number}"
    with kernel_for(folder, own_modules=False) as given:
        done = NotebookClient(
            chain, kernel_name="python3", resources={"metadata": {"path": str(folder)}}, **given
        ).execute()
    cells: dict[tuple[str, str], list[nbformat.NotebookNode]] = {}
    for cell in done.cells:
        if "case" in cell.metadata:
            cells.setdefault(tuple(cell.metadata["case"]), []).append(cell)
    return {case: _said(several) for case, several in cells.items()}


def _said(cells: list[nbformat.NotebookNode]) -> Said:
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    streams = [output for output in outputs if output.output_type == "stream"]
    data = [output.data for output in outputs if "data" in output]
    text = [output.text for output in streams if output.name != "stderr"]
    text += [bundle.get("text/markdown") or bundle.get("text/plain", "") for bundle in data]
    html = "".join(bundle.get("text/html", "") for bundle in data)
    pictures = html.count("<img ") + sum("image/png" in bundle for bundle in data)
    return Said("\n".join(text), "\n".join(output.text for output in streams if output.name == "stderr"), pictures)
