"""Calibration by Bayes' rule: a density of the scores for each class.

`formulas` have two or four parameters for each class. Flexible densities are `kde`
(kernels) and `dpm` (mixtures of normals). `nadaraya_watson` is the plain event rate
within a bandwidth.
"""
