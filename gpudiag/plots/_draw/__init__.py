"""What every plot draws with: axes, colours, pictures and their bytes."""
