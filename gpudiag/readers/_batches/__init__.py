"""What the readers of batches share."""
