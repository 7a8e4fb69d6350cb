"""Many diagnoses of the same training over time."""
