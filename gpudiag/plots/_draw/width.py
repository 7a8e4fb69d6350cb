"""The width of a figure."""

WIDTH_IN = 9.0
"""Width that figures are painted for, in inches."""
