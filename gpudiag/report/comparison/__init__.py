"""A comparison for people: blocks for the notebook and its reports, lines for a terminal, a few for a pull request.

Everything is written from the document (schema ``gpudiag.comparison/1``).
"""

from __future__ import annotations

from gpudiag.report.comparison.calibration import calibration_text
from gpudiag.report.comparison.files import write_files
from gpudiag.report.comparison.headline import headline
from gpudiag.report.comparison.sections import SECTIONS
from gpudiag.report.comparison.summary import several, summary
from gpudiag.report.comparison.text import screen, text

__all__ = ["SECTIONS", "calibration_text", "headline", "screen", "several", "summary", "text", "write_files"]
