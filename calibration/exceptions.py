"""Warnings of the package."""


class CalibrationWarning(UserWarning):
    """The data allow only a fallback answer, such as a smoothed constant.

    Examples
    --------
    >>> import warnings
    >>> from calibration import CalibrationWarning, PlattCalibrator
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CalibrationWarning)
    ...     one_class = PlattCalibrator().fit([0.2, 0.4, 0.7], [1, 1, 1])
    >>> one_class.predict([0.5])
    array([0.8])
    """
