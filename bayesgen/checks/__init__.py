"""Whether to believe it: validation, calibration, comparison."""
