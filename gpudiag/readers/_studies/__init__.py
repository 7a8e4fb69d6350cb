"""What the readers of studies and trial tables share."""
