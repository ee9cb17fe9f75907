"""The command line: tables in files, models in files, one-line errors."""
