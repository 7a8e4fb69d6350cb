"""What each kind of object looks like, as blocks: one file a topic."""
