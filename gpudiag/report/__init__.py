"""Numbers become words here: documents as text, Markdown and HTML; notebooks become report files.

Renderers take the JSON document of a diagnosis (``gpudiag.report.document``), never its objects.
"""
