"""Calibration by Bayes' rule: a density of the scores for each class.

`formulas` have two or four parameters a class. Flexible densities: `kde` (kernels) and
`dpm` (mixtures of normals). `nadaraya_watson` is the plain event rate within a
bandwidth.
"""
