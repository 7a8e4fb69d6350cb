"""What a diagnosis holds, and every way to show it."""
