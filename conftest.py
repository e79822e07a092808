"""Settings for all tests: one thread of linear algebra each, since the tests themselves run on all cores.

Nor does a test fail because a machine is busy: generated examples have no deadline. Of a property 50 are tried, others
at every run, unless a test states how many it needs.
"""

import os

from hypothesis import settings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

#: Tables are as wide whichever test loads the command line first.
os.environ["COLUMNS"] = "100"

settings.register_profile("patient", deadline=None, max_examples=50)
settings.load_profile("patient")
