"""Whole numbers as functions of the number of processes n, of ranks and of the steps of loops."""
