"""Results under the hash of what made them: results/store/<key>/.

A job's key covers its stage, settings, code, seed and the keys of the jobs whose files it reads. So
equal jobs of two studies are one, an edit never overwrites a result, and an edit that is undone
finds its old results. results/<study>/ holds links into the store.
"""
