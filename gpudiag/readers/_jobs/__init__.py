"""Jobs as a scheduler keeps them: who had which nodes from when to when."""
