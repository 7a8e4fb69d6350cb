"""Lines in which a training says how far it is and how fast, as one table of steps."""
