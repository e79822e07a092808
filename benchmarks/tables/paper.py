"""Figures of Sanjay & Vadhiyar 2008, to stand beside ours: Tables 3 and 4 (mean PPE in %), and section 4.3."""

from __future__ import annotations

#: Mean PPE with a single model and with multiple models, by application, cluster and loading (Tables 3 and 4).
MEAN_PPE = {
    ("eigen", "intel", "random"): (25.41, 22.47),
    ("eigen", "intel", "grid"): (40.5, 27.93),
    ("fft", "intel", "random"): (31.16, 25.16),
    ("cg", "intel", "random"): (22.2, 20.82),
    ("md", "intel", "random"): (18.85, 16.66),
    ("md", "intel", "grid"): (10.05, 8.7),
    ("poisson", "intel", "random"): (31.62, 27.86),
    ("is", "intel", "random"): (11.53, 11.68),
    ("is", "intel", "grid"): (11.00, 11.4),
    ("ssor", "intel", "random"): (22.98, 16.22),
    ("ssor", "intel", "grid"): (10.5, 9.69),
    ("eigen", "amd", "random"): (34.7, 23.3),
    ("eigen", "amd", "grid"): (17.38, 16.61),
    ("md", "amd", "random"): (23.7, 25.05),
    ("md", "amd", "grid"): (12.06, 13.09),
    ("poisson", "amd", "grid"): (14.47, 15.95),
    ("ssor", "amd", "grid"): (35.25, 13.49),
    ("is", "amd", "grid"): (32.02, 13.88),
    ("poisson", "woodcrest", "random"): (37.41, 28.78),
    ("is", "woodcrest", "random"): (38.24, 27.7),
}

#: Table 5: losses (%) of ten groups of problem sizes, molecular dynamics on the 8-processor cluster, random loads.
SCHEDULING_LOSS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 2.0, 0.0)

#: Section 4.3: what other ways to model need, beside experiments and as experiments; its numbering of references.
OVERHEADS = (
    ("Adve and Vernon [1]", "a deterministic graph of the application's tasks", "sizes x processor counts x tasks"),
    ("Prophesy [34, 33]", "", "sizes x processor counts"),
    (
        "Anglano [4]",
        "source code analysis for computation and communication segments",
        "segments x sizes x processor counts",
    ),
    ("Lee et al. [24]", "", "300 to 1,000"),
    ("PACE [25, 2]", "source code analysis for subtasks, and their mapping for compilation", ""),
    ("Ipek et al. [21]", "", "250 to 500"),
    (
        "the paper's",
        "about 5 minutes for the sorted list of functions; 2 to 4 s for a prediction",
        "60 (20 + 20 + 10 + 10)",
    ),
)
