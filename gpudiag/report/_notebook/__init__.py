"""Notebooks: found, copied, executed, and their outputs made pages."""

from gpudiag.report._notebook.grammars import put_off

put_off()
