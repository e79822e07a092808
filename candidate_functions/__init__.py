"""The mathematics of Eq. (1): function families, batched least squares, staged and exhaustive search.

Pure: numpy in, numpy out. Knows nothing of nodes, files or schedulers. Eq. (1) of Sanjay & Vadhiyar, "Performance
modeling of parallel applications for grid scheduling" (J. Parallel Distrib. Comput. 68, 2008), section 3::

    T = a f_comp(N) / (cpu f_Pcomp(P)) + b f_comm(N) / (f_bw(bw) f_Pcomm(P))
"""

from __future__ import annotations

from candidate_functions.bandwidth import BANDWIDTH
from candidate_functions.complexity import COMPLEXITY
from candidate_functions.family import CandidateFunction, Family
from candidate_functions.scalability import SCALABILITY

__all__ = ["BANDWIDTH", "COMPLEXITY", "SCALABILITY", "CandidateFunction", "Family"]
