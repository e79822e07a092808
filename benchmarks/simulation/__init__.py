"""The simulator beside SMPI: times, energies and speed of four applications on the same system."""
