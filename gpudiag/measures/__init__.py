"""Pure functions from a run to small frozen profiles. One topic a file, the same names in rules/ and plots/."""
