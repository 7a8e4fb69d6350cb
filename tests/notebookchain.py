"""One notebook on many inputs in one kernel, by papermill: starting a kernel takes longer than most of the runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill

from gpudiag.report._notebook.copies import copy_all

KERNEL = "python3"


@dataclass(frozen=True)
class Said:
    """What the cells of one input left: every text in their outputs, and what went to stderr."""

    text: str
    stderr: str
    pictures: int

    @property
    def complaints(self) -> list[str]:
        """Lines that nobody should find in a report."""
        bad = re.compile(r"Traceback|\w+Warning\b|\bnan\b|\bNaT\b|<NA>|object at 0x")
        return [line.strip()[:200] for line in f"{self.text}\n{self.stderr}".splitlines() if bad.search(line)]


def run_chain(name: str, runs: Mapping[str, Path], folder: Path) -> dict[str, Said]:
    """Run notebook ``name`` on each of ``runs`` that has data for it, as `gpudiag lab` fills it in.

    Raises papermill's PapermillExecutionError where a cell fails.
    """
    kernel = {"name": KERNEL, "display_name": KERNEL, "language": "python"}
    chain = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    for case, run in runs.items():
        copies = {path.stem: path for path in copy_all(folder / case, run)}
        for cell in nbformat.read(copies[name], as_version=4).cells if name in copies else ():
            cell.id = f"{len(chain.cells)}"
            cell.metadata.case = case
            chain.cells.append(cell)
    nbformat.write(chain, folder / "chain.ipynb")
    done = papermill.execute_notebook(
        folder / "chain.ipynb", folder / "done.ipynb", kernel_name=KERNEL, cwd=folder, progress_bar=False
    )
    cases = dict.fromkeys(cell.metadata["case"] for cell in done.cells if "case" in cell.metadata)
    return {case: _said([cell for cell in done.cells if cell.metadata.get("case") == case]) for case in cases}


def _said(cells: list[nbformat.NotebookNode]) -> Said:
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    streams = [output for output in outputs if output.output_type == "stream"]
    data = [output.data for output in outputs if "data" in output]
    text = [output.text for output in streams if output.name != "stderr"]
    text += [bundle.get("text/markdown") or bundle.get("text/plain", "") for bundle in data]
    html = "".join(bundle.get("text/html", "") for bundle in data)
    pictures = html.count("<img ") + sum("image/png" in bundle for bundle in data)
    return Said("\n".join(text), "\n".join(output.text for output in streams if output.name == "stderr"), pictures)
