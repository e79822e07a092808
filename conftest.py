"""Settings for all tests: one thread of linear algebra each, since the tests themselves run on all cores; no clock."""

import os

from hypothesis import settings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A busy machine is no fault of the code's.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
