"""papermill of a notebook with one empty cell, and nbconvert of it: what a report through a kernel cannot go below.

python benchmarks/floors/empty_notebook.py OUT.ipynb
"""

import sys
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

out = Path(sys.argv[1])
empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", id="one")])
empty.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
source = out.with_suffix(".in.ipynb")
nbformat.write(empty, source)
papermill.execute_notebook(source, out, progress_bar=False)
out.with_suffix(".html").write_text(HTMLExporter().from_filename(str(out))[0], encoding="utf-8")
