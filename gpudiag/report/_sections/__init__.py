"""Sections of a report: each is a function from the document to blocks."""
