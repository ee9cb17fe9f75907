"""After the fit: whether a calibrator still holds."""
