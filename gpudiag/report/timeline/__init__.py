"""The interactive timeline: trials, GPUs, ledger, events and findings of a run on one time axis, offline."""
