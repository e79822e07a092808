"""Applications of labelled processes, simulated on systems that need not exist: time, energy and the chance to finish.

After MERPSYS (Proficz and Czarnul, section 3). One simulated thread stands for a group of processes that do the same.
"""
