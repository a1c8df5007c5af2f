"""A content-addressed store of results, in the folders results/store/<key>/.

A job's key is a hash of its stage, settings, code, seed and the keys of its input jobs. Therefore
identical jobs of two studies run once, an edit never overwrites a result, and undoing an edit
restores the old results. results/<study>/ contains links into the store.
"""
