"""The command line: tables in files, models in files, one-line errors."""

# First, for the rest takes seconds, in which the command may be interrupted.
from localexpert.cli import interrupt as _interrupt  # noqa: F401
