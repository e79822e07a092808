"""Simulation of applications on hypothetical systems: execution time, energy and probability of completion.

After MERPSYS (Proficz and Czarnul, section 3). One simulated thread stands for a group of processes that do the same.
"""
