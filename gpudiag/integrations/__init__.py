"""Callbacks that record a training from within its framework, one file a framework.

Importing one imports its framework. Each is called ``GpudiagCallback``; ``docs/record.md`` has a line of code for each.
"""
