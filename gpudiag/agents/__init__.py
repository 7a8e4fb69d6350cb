"""For coding assistants: a server of the Model Context Protocol, whose SDK only ``server.py`` knows, and a skill."""
