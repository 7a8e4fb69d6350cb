"""What a run is made of: its tables, part of it as a run, and the GPUs that its trials name."""
