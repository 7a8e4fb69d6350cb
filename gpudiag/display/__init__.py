"""How numbers, tables and notes are written: as plain text, as Markdown, as HTML in a notebook's theme."""
