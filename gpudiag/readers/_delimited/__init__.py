"""Delimited text as typed columns, for the readers of tables."""
