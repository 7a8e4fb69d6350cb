"""Telemetry of one job from the Prometheus of a cluster, over its HTTP API."""
