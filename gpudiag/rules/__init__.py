"""Functions from one profile to one verdict. One topic a file, the same names as in measures/."""
