"""How many trials fit into memory, and what happens where they do not."""
