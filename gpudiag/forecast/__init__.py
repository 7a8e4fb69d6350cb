"""Forecasts: what another degree of parallelism, another memory limit or another pruner would do."""
