"""Settings for all tests: one thread of linear algebra each, since the tests themselves run on all cores."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
