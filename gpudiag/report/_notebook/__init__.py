"""Notebooks: found, copied, executed, and their outputs made pages."""
