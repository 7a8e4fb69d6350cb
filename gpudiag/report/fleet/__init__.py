"""A fleet for people: blocks for the notebook and its reports, all from the document (schema ``gpudiag.fleet/1``)."""
