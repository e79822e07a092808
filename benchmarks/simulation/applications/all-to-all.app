iterations = 2
operations = 2e10
bytes = 1e8


def part():
    for i in range(iterations):
        compute(operations / size)
        alltoall(bytes / size / size)
