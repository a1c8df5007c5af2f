"""Estimates the variance between runs of an arm, jointly from all arms of a study.

The runs of a study form a table of arms by seeds. The model is

    score[arm, seed] = mean[arm] + shift[seed] + noise[arm, seed],

where all arms share the shift, because they share the seed's random numbers. The few runs of one
arm give a poor estimate of its noise: if they happen to agree, any difference seems significant.
The noise variance is therefore the residual mean square of the whole table (the pooled variance),
with (arms - 1) (seeds - 1) degrees of freedom. If an arm's own variance is larger, it replaces the
pooled variance. The arm's own variance has (seeds - 1) degrees of freedom if it is significantly
larger (F test at 5 %) or if the arm is the baseline. Otherwise, the degrees of freedom are those of
the pooled variance. We simulated this rule (docs/statistics.md). Source of the mean squares:
Searle, Casella and McCulloch 1992, Variance Components, chapter 4.

Arrays may have leading axes of independent repeats.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

# Confidence level of the F test for whether an arm is noisier than the others.
WIDE = 0.95


@dataclass(frozen=True)
class RunSpread:
    """Variances of a single run's score; [...] are axes of independent repeats.

    Attributes:
        arms: variance of each arm's noise, at least the pooled variance, [..., arms].
        noisier: whether the arm's own variance exceeds the pooled variance, [..., arms].
        wide: whether the arm's own variance is significantly above `pooled`, [..., arms].
        pooled: residual mean square of all arms [...].
        seeds: variance of the seeds' shifts [...].
        freedom: degrees of freedom of the pooled variance.
        n_seeds: number of seeds.
        twin: variance of the noise of the reference's A/A twin [...], or None. The twin has
            separate shifts, because its random numbers differ from those of the arms.
    """

    arms: np.ndarray
    noisier: np.ndarray
    wide: np.ndarray
    pooled: np.ndarray
    seeds: np.ndarray
    freedom: int
    n_seeds: int
    twin: np.ndarray | None = None

    def difference(self, arm: np.ndarray | int, baseline: int) -> tuple[np.ndarray, np.ndarray]:
        """Variance of the difference between two arms' means, and its degrees of freedom.

        Args:
            arm: index of the arm, or of each arm [m].
            baseline: index of the other arm.
        """
        alone = self.n_seeds - 1
        theirs = (self.arms[..., [baseline]], np.where(self.noisier[..., [baseline]], alone, 0))
        return self._combined(self._of(arm), theirs)

    def from_both(self, arm: np.ndarray | int, reference: int) -> tuple[np.ndarray, np.ndarray]:
        """Like `difference`, but the baseline is the mean of the reference and its twin.

        The arm and the reference have the same shift, half of which remains in the difference. The
        difference also contains half of the twin's shift, which is independent.
        """
        both = (self.arms[..., [reference]] + self.twin[..., None]) / 4
        noisier = self.noisier[..., [reference]] | (self.twin > self.pooled)[..., None]
        theirs = (both, np.where(noisier, 2 * (self.n_seeds - 1), 0))
        return self._combined(self._of(arm), theirs, shifts=0.5)

    def of_twin(self, reference: int) -> tuple[np.ndarray, np.ndarray]:
        """Like `difference`, but for the reference and its twin, whose shifts are independent."""
        both = self.arms[..., [reference]] + self.twin[..., None]
        return self._combined((both, np.array(2 * (self.n_seeds - 1))), shifts=2)

    def level(self, arm: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Variance of the mean over an arm's runs, for comparisons with a fixed policy."""
        variance, freedom = self._combined(self._of(arm), shifts=1)
        noisier = self.noisier[..., np.atleast_1d(arm)]
        return variance, np.where(noisier, np.minimum(freedom, self.n_seeds - 1), freedom)

    def contrast(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variance of a contrast of arms' means, with weights [arms] that sum to 0."""
        both = (self.arms * weights**2).sum(axis=-1, keepdims=True)
        return self._combined((both, np.array(0)))

    def _of(self, arm: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        arm = np.atleast_1d(arm)
        return self.arms[..., arm], np.where(self.wide[..., arm], self.n_seeds - 1, 0)

    def _combined(
        self, *terms: tuple[np.ndarray, np.ndarray], shifts: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum of variances divided by the number of seeds, with Satterthwaite's degrees of freedom.

        Args:
            terms: pairs (variance, degrees of freedom). Pass 0 degrees of freedom for terms that
                depend on the pooled variance, and therefore on each other.
            shifts: factor by which the variance of the seeds' shifts is multiplied.
        """
        shift = shifts * self.seeds[..., None]
        total = sum((variance for variance, _ in terms), shift)
        shared = sum(np.where(freedom > 0, 0, variance) for variance, freedom in terms)
        spread = shared**2 / max(self.freedom, 1) + shift**2 / (self.n_seeds - 1)
        for variance, freedom in terms:
            spread = spread + np.where(freedom > 0, variance**2, 0) / np.maximum(freedom, 1)
        most = np.full(total.shape, float(max(self.freedom, 1)))
        combined = np.divide(total**2, spread, out=most, where=spread > 0)
        return total / self.n_seeds, combined


def run_spread(runs: np.ndarray, twin: np.ndarray | None = None) -> RunSpread:
    """Estimate the variances of a study's runs.

    Args:
        runs: mean score of each run [..., arms, seeds >= 2].
        twin: mean scores of the runs of the reference's A/A twin [..., seeds].
    """
    n_arms, n_seeds = runs.shape[-2:]
    by_seed = runs.mean(axis=-2)
    noise = runs - by_seed[..., None, :]
    noise = noise - noise.mean(axis=-1, keepdims=True)
    of_arms = (noise**2).sum(axis=-1) / (n_seeds - 1)
    of_seeds = n_arms * by_seed.var(axis=-1, ddof=1)
    pooled = of_arms.sum(axis=-1) / max(n_arms - 1, 1)
    seeds = np.maximum(of_seeds - pooled, 0) / n_arms
    freedom = (n_arms - 1) * (n_seeds - 1)
    arms = np.broadcast_to(pooled[..., None], of_arms.shape)
    noisier = wide = np.zeros(of_arms.shape, bool)
    if n_arms > 2:
        # Residuals are differences from means over arms, so they also contain other arms' noise.
        alone = (of_arms - pooled[..., None] / n_arms) * n_arms / (n_arms - 2)
        noisier = alone > arms
        wide = alone > arms * stats.f.ppf(WIDE, n_seeds - 1, freedom)
        arms = np.maximum(alone, arms)
    if twin is not None:
        twin = np.maximum(twin.var(axis=-1, ddof=1) - seeds, pooled)
    return RunSpread(arms, noisier, wide, pooled, seeds, freedom, n_seeds, twin)
