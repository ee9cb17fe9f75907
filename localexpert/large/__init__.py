"""Tables of more rows than memory: fitted on files, predicted part by part."""
