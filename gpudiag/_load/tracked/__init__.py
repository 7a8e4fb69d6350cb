"""A run that a tracker of experiments keeps, as files that readers know; one file a tracker.

A tracker has ``fetch(run, folder)``: by calls that only read it puts files into the folder, and returns the rest.
"""
