"""After the fit: priors that move (`priors`), whether a calibrator still holds (`monitor`)."""
