"""What loading a run is made of: which inputs, each read and described."""
