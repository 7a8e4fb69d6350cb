"""Profiler traces: what the GPU did in each profiled step, and what the host did while it was idle."""
