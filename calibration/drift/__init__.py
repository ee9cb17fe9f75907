"""What may change after the fit: priors, and whether a model has aged."""
