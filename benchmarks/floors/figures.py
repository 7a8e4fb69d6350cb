"""What the report of the pruning sample cannot go below: its libraries, and as many plain figures of matplotlib.

    python benchmarks/floors/figures.py OUT.html

17 figures with 29 axes, three lines of 200 points and a legend in each, laid out by matplotlib and saved as SVG, and a
page that nbconvert makes of them. Nothing is read, measured or said.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from nbconvert import HTMLExporter

FIGURES, TALL = 17, 12
"""So many, and so many of them with two axes one above the other."""

imported_s = time.process_time()
rng = np.random.default_rng(0)
cells = []
for number in range(FIGURES):
    rows = 2 if number < TALL else 1
    figure = Figure(figsize=(9, 3 * rows), layout="constrained")
    for ax in np.atleast_1d(figure.subplots(rows, 1, sharex=True)):
        for gpu, course in pd.DataFrame(rng.random((200, 3))).items():
            ax.plot(course, label=f"GPU {gpu}")
        ax.set(xlabel="time [h]", ylabel="utilization [%]", title="Utilization")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=3)
    out = io.StringIO()
    figure.savefig(out, format="svg")
    shown = nbformat.v4.new_output("display_data", {"image/svg+xml": out.getvalue()})
    cells.append(nbformat.v4.new_code_cell("", outputs=[shown]))
drawn_s = time.process_time()
page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
Path(sys.argv[1]).write_text(page, encoding="utf-8")
parts = imported_s, drawn_s - imported_s, time.process_time() - drawn_s
print("start and imports {:.2f} s of CPU, figures {:.2f} s, page {:.2f} s".format(*parts))
