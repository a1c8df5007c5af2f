"""Command lines, one per stage."""

import gc

# A stage makes millions of small objects and hardly a cycle among them: at the default threshold
# the collector takes a tenth of its time.
gc.set_threshold(100_000, 50, 1000)
