"""Telemetry of a whole cluster as runs: one a scheduler job, and what is left over."""
