"""The variance microscope: gradient estimators at fixed weights."""
