"""What another number of trials at once would bring."""
