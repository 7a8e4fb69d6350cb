"""How a training ended: by its log, and by the recording of its command."""
