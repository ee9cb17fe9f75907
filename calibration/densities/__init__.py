"""Calibration by Bayes' rule: a density of the scores for each class.

Two parameters or four a class, as formulas: `gaussian` and `asymmetric_laplace`.
Flexible densities: `kde` (the kernel calibrator) and `dpm` (mixtures of normals), on
their common base `class_densities`. Behind `kde` stand `kernel_density`, the estimate
for one class, and `bandwidths`, how a bandwidth is judged. `nadaraya_watson` is the
plain event rate within a bandwidth.
"""
