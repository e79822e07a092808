"""Predictors from analytic models of an application: MPI on clouds of servers, SPMD with I/O."""
