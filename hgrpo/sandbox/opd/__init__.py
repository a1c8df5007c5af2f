"""On-policy distillation: how a teacher's word for every token reaches a student that samples.

The teacher is analytic and knows the right answer, so a failure is the objective's, not the
teacher's. `declared` lists the losses, `experiments` the runs that compare them, and `microscope`
measures estimators of the gradient at weights that never change.
"""
