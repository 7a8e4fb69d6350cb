"""What measures need to know of a GPU and its processes."""
