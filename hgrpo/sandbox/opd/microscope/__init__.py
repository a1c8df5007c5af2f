"""The variance microscope, which compares gradient estimators at fixed weights."""
