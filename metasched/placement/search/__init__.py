"""The exact search for the best resource set of every domain and number of processors."""
