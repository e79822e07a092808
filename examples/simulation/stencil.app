# A one-dimensional heat equation: every cell computes, and tells its neighbours the edges of its part.
iterations = 1000
points = 1e11
edge = 8000


def cell():
    for i in range(iterations):
        compute(points / size, 5 * data)
        if rank > 0:
            send(cell[rank - 1], edge)
        if rank < size - 1:
            send(cell[rank + 1], edge)
        if rank > 0:
            recv(cell[rank - 1])
        if rank < size - 1:
            recv(cell[rank + 1])
