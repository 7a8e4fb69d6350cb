"""Many runs as one table: found, diagnosed within limits, kept as they come, and added up."""
