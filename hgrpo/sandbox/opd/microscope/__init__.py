"""The variance microscope: estimators of the gradient at weights that never change."""
