"""``python -m gpudiag``."""

from gpudiag.cli import main

main()
