"""Ways to predict an execution time, all behind one contract."""
