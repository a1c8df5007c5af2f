"""Studies of the sandbox: arms over paired seeds, their statistics, figures and page.

A file of configs/sandbox declares a study (`study`). `pieces` names the trainers,
`training` trains one arm, `measures` reads one number a seed from a run's rows, `statistics`
compares arms, `figures` draws them, and `page` puts all studies on one page. Only training
imports torch.
"""
