"""The kinds of arrays that the mathematics takes and gives, by what they hold, and a product of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def matrix_product(left: Flags, right: NDArray[np.bool_] | NDArray[np.float32]) -> NDArray[np.float32]:
    """Product of matrices of flags, or of flags and counts: exact where no sum passes 2^24.

    Single precision, since it is twice as fast. Sums of such numbers are never invalid, but some builds of OpenBLAS
    raise that flag by what they read beyond a small matrix (numpy/numpy#24067), so that NumPy would warn: it may not.

    >>> matrix_product(np.array([[True, False], [True, True]]), np.array([[True], [True]])).ravel().tolist()
    [1.0, 2.0]
    """
    with np.errstate(invalid="ignore"):
        product: NDArray[np.float32] = left.astype(np.float32) @ right.astype(np.float32, copy=False)
    return product
