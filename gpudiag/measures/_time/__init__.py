"""Samples, intervals, windows and series: what measures do with time."""
