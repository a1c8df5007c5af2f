"""A content-addressed store of results, in the folders results/store/<key>/.

The key of a job is a hash of its stage, settings, code and seed, and of the keys of its input jobs.
Therefore, a job that occurs in two studies runs only once. After an edit of settings or code, new
results do not overwrite old results, and undoing the edit restores the old results.
results/<study>/ contains links into the store.
"""
