"""Trainings whose every step is known: what the GPU waited for, and the files that such a training leaves."""
