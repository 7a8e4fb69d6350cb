"""Quantities that two runs have in common, by what they are of."""
