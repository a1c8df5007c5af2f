"""The progress bar of long-running loops: tqdm, unless the calling program replaces it.

`hgrpo.progress` replaces `bar`, because jobs of the pipeline write their progress to a file.
"""

from tqdm import tqdm

bar: type[tqdm] = tqdm
