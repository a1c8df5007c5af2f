"""Studies of the sandbox: arms over paired seeds, their statistics, figures and page.

Files in configs/sandbox define studies (`study`). `pieces` registers the trainers, `training`
trains one arm, `measures` computes one number per seed from a run's rows, `statistics` compares
arms, `figures` draws them, and `page` renders all studies on one page. Only training imports torch.
"""
