"""Instructions and the time that they take, by groups of processes that compute alike."""
