"""Choosing among calibrators by held-out trials, and the rows to calibrate by.

Above the calibrators of two classes and of more: `trials` holds them on either,
`auto` stacks or selects by them, `compare` scores whatever it is given, `names` is the
one table of names. `label_sample` draws rows to be labelled.
"""
