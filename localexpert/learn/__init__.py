"""Roads: from rows and targets to one law per row, by kind of target."""
