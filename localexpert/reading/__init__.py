"""Tables as people write them: read from files, with columns turned into features."""

from localexpert.reading.columns import ColumnRule, OddCell
from localexpert.reading.files import FileFormat
from localexpert.reading.reader import ColumnReader
from localexpert.reading.texts import TableError

__all__ = ["ColumnReader", "ColumnRule", "FileFormat", "OddCell", "TableError"]
