"""Energy and clock: the dependence of times on the frequency, the power of runs, and energy as their product."""
