"""Tables as people write them: read from files, with columns turned into features."""

from localexpert.reading.columns import ColumnRule, OddCell
from localexpert.reading.files import FileFormat
from localexpert.reading.messages import TableError
from localexpert.reading.reader import ColumnReader

__all__ = ["ColumnReader", "ColumnRule", "FileFormat", "OddCell", "TableError"]
