"""What tools call their fields and metrics."""
