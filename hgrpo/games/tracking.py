"""How long work shows its progress: with tqdm, or with the bar of the program that runs it.

The pipeline's jobs write their progress into a file, so `hgrpo.progress` puts its bar here.
"""

from tqdm import tqdm

bar: type[tqdm] = tqdm
