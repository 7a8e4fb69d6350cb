"""What measures need to know of trials, pruners and failures."""
