"""Choice among calibrators by held-out trials, and of the rows to calibrate on.

This room is above the calibrators of two classes and of more. `trials` tries both
kinds. `auto` pools or selects calibrators by trials. `compare` scores any calibrators.
`names` is the only table of names. `label_sample` draws rows to be labelled.
"""
