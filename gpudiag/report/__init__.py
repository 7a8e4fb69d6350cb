"""Documents made from a diagnosis: text, Markdown, JSON, and executed notebooks as HTML."""
