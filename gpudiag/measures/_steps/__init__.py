"""Steps of a training: the time between the lines of its log, and what it was spent on."""
