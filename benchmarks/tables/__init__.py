"""The tables of Sanjay & Vadhiyar 2008 on the simulated testbed, each beside the paper's own figures."""
