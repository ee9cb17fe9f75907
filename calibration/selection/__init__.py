"""Choosing among calibrators by held-out trials.

`trials` holds them; `auto` is the calibrator that stacks or selects by them, and
`report` what it says of its choice.
"""
