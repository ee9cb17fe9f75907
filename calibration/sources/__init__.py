"""Tables larger than memory, as parts that are read one at a time.

`source` opens files, frames, functions and Dask's collections; `part` is what all of
them are made of; `kinds` is what columns must have in common.
"""
