"""Choosing among calibrators by held-out trials, and the rows to calibrate by.

`trials` holds them; `auto` is the calibrator that stacks or selects by them, and
`report` what it says of its choice. `label_sample` draws rows to be labelled.
"""
