"""The progress bar of long-running loops, which is tqdm unless the calling program replaces it.

`hgrpo.progress` replaces it, because the pipeline's jobs write their progress to a file.
"""

from tqdm import tqdm

bar: type[tqdm] = tqdm
