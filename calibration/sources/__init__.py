"""Tables larger than memory, as parts that are read one at a time.

`parts` opens frames, functions and Dask's collections, `files` reads CSV and Parquet.
"""
