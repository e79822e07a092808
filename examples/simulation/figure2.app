# Slaves compute; the master waits for all of them, and then puts together what they found.
operations = 287.4179392e9
together = 298.0493568e9


def master():
    barrier(master, slave1)
    compute(together)


def slave1():
    compute(operations)
    barrier(master, slave1)
