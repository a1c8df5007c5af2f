"""Progress bars of long-running work: tqdm, or the bar of the calling program.

`hgrpo.progress` replaces the bar, because the pipeline's jobs write progress to a file.
"""

from tqdm import tqdm

bar: type[tqdm] = tqdm
