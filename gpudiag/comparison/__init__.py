"""Two runs side by side: whether they may be compared, in what they differ, and whether a plan came true."""
