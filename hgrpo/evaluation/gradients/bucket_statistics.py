"""Computes the norm, noise and direction of a bucket's gradient from its groups' inner products.

A bucket's loss is a mean over its tokens (or trajectories). Its gradient is sum u_k / sum n_k,
where n_k is the number of group k's tokens (or trajectories), and u_k is the sum of their
gradients. All statistics are functions of inner products of the u_k, so that a bootstrap over
groups requires no additional backward pass.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GroupProducts:
    """Inner products of the gradients of G groups, with C components each.

    Attributes:
        products: float64 [C, G, C, G], inner products of the groups' gradient sums u_k.
        sizes: float64 [G], number n_k of tokens or trajectories in each group.
        losses: float64 [C, G], sum of the losses of each group's tokens or trajectories.
    """

    products: np.ndarray
    sizes: np.ndarray
    losses: np.ndarray

    def of(self, groups: np.ndarray) -> "GroupProducts":
        """Restrict the products to a subset of groups."""
        products = self.products[:, groups][:, :, :, groups]
        return GroupProducts(products, self.sizes[groups], self.losses[:, groups])

    def weighted(self, weights: np.ndarray, components: np.ndarray) -> "GroupProducts":
        """Multiply selected components of the gradients by a weight per group.

        Args:
            weights: float64 [G].
            components: bool [C], the components to multiply.
        """
        factors = np.where(components[:, None], weights[None], 1.0)
        products = factors[:, :, None, None] * self.products * factors
        return GroupProducts(products, self.sizes, factors * self.losses)

    def combined(self, mixture: np.ndarray) -> "GroupProducts":
        """Replace the components by D linear combinations, with coefficients `mixture` [D, C].

        For example, the gradient for whitened advantages (A - mean) / deviation is a combination of
        the gradient for the advantages A and the gradient for constant advantages of 1.
        """
        mixed = np.einsum("ac,cgdh,bd->agbh", mixture, self.products, mixture, optimize=True)
        return GroupProducts(mixed, self.sizes, mixture @ self.losses)


@dataclass(frozen=True)
class BucketStatistics:
    """Loss, norm, noise and direction of a bucket's gradient, for each of R resamples.

    Attributes:
        loss: [R, C], the loss.
        norm: [R, C], |sum u / sum n|.
        noise: [R, C], the estimated squared error of the gradient, E |estimate - truth|^2.
        drawn: [R, C], the expected increase of the squared norm due to resampling, or 0 without
            resampling. It equals the noise of the original sample, because resamples vary around
            the sample as the sample varies around the true gradient.
        cosine: [R, C, C], cosine between two components' gradients; nan if either gradient is 0.
    """

    loss: np.ndarray
    norm: np.ndarray
    noise: np.ndarray
    drawn: np.ndarray
    cosine: np.ndarray

    @property
    def signal(self) -> np.ndarray:
        """The squared norm corrected for noise, [R, C]. It may be negative by chance."""
        return self.norm**2 - self.noise - self.drawn

    @property
    def corrected(self) -> np.ndarray:
        """The noise-corrected norm, [R, C]: the square root of max(`signal`, 0)."""
        return np.sqrt(np.maximum(self.signal, 0.0))

    @property
    def signal_to_noise(self) -> np.ndarray:
        """Ratio of signal to noise, [R, C]; nan if the noise is 0."""
        return _ratio(self.signal, self.noise)


def bucket_statistics(groups: GroupProducts, counts: np.ndarray | None = None) -> BucketStatistics:
    """Statistics of the gradient over all groups of a bucket.

    The gradient g = sum u_k / sum n_k is a ratio of sums over m independent groups. Its noise is
    m / (m - 1) * sum |u_k - g n_k|^2 / (sum n_k)^2. See Cochran 1977, "Sampling Techniques",
    section 6.4, https://www.wiley.com/en-us/Sampling+Techniques.

    Args:
        counts: [R, m], multiplicity of each group in each resample. By default, there is one
            sample, which contains every group once.

    Raises:
        ValueError: there are fewer than two groups, so their variance is undefined.
    """
    number = len(groups.sizes)
    if number < 2:
        raise ValueError("the noise of a gradient requires at least two groups")
    counts = np.ones((1, number)) if counts is None else np.asarray(counts, dtype=np.float64)
    components = len(groups.products)
    total = counts @ groups.sizes  # [R]
    flat = groups.products.reshape(components * number * components, number)
    # Inner products [R, C, m, C] of the components of one group with their totals over groups.
    with_sum = (counts @ flat.T).reshape(-1, components, number, components)
    sums = np.einsum("rg,ragb->rab", counts, with_sum)
    square = np.einsum("raa->ra", sums) / total[:, None] ** 2
    lengths_squared = np.einsum("agag->ag", groups.products)
    to_mean = np.einsum("raga->rag", with_sum) / total[:, None, None]
    sizes = groups.sizes
    residual = lengths_squared[None] - 2 * sizes * to_mean + sizes**2 * square[:, :, None]
    spread = np.einsum("rg,rag->ra", counts, residual)
    noise = number / (number - 1) * np.maximum(spread, 0.0) / total[:, None] ** 2
    lengths = np.sqrt(np.maximum(np.einsum("raa->ra", sums), 0.0))
    cosine = _ratio(sums, lengths[:, :, None] * lengths[:, None, :])
    loss = counts @ groups.losses.T / total[:, None]
    whole = (counts == 1).all(axis=1, keepdims=True)
    drawn = np.zeros_like(noise)
    if not whole.all():
        drawn = np.where(whole, 0.0, bucket_statistics(groups).noise)
    return BucketStatistics(loss, np.sqrt(np.maximum(square, 0.0)), noise, drawn, cosine)


def cosine_to_all(groups: GroupProducts, chosen: np.ndarray) -> np.ndarray:
    """Cosine between a bucket's gradient and the gradient of all groups, for each component, [C].

    Args:
        chosen: indices of the bucket's groups.
    """
    mask = np.zeros(len(groups.sizes))
    mask[chosen] = 1.0
    every = np.ones(len(groups.sizes))
    products = np.einsum("agah->agh", groups.products)
    between = np.einsum("agh,g,h->a", products, mask, every)
    lengths = np.einsum("agh,g,h->a", products, mask, mask) * np.einsum(
        "agh,g,h->a", products, every, every
    )
    return _ratio(between, np.sqrt(np.maximum(lengths, 0.0)))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)
