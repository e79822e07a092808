"""The mathematics of Eq. (1): function families, batched least squares, staged and exhaustive search."""
