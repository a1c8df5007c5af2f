"""A content-addressed store of results: results/store/<key>/.

A job's key is a hash of its stage, settings, code, seed and the keys of its input jobs. So equal
jobs of two studies run once, an edit never overwrites a result, and undoing an edit restores the
old results. results/<study>/ holds links into the store.
"""
