"""Studies of the sandbox, which compare arms over paired seeds.

Studies are defined by files in configs/sandbox (see `study`). `pieces` registers the trainers,
`training` trains one arm, `measures` computes one number per seed from a run's log, `statistics`
compares arms, `figures` draws figures, and `page` renders all studies on one page. Only `training`
imports torch.
"""
