"""What somebody may attach to a bug report: how a run was read and what failed, without names and values."""
