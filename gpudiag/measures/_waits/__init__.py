"""What a GPU without a kernel waited for: one source a file."""
