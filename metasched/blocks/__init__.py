"""Application blocks: execution time, power and probability of completion from hardware parameters. Pure.

After Proficz and Czarnul, *Performance and power-aware modeling of MPI applications for cluster computing* (2015),
whose Table 1 is :mod:`metasched.blocks.formulas` and whose Table 3 lies in ``entries/``, beside other hardware.
"""
