iterations = 50
operations = 4e9
bytes = 100000


def cell():
    for i in range(iterations):
        compute(operations / size)
        if rank > 0:
            send(cell[rank - 1], bytes)
        if rank < size - 1:
            send(cell[rank + 1], bytes)
        if rank < size - 1:
            recv(cell[rank + 1])
        if rank > 0:
            recv(cell[rank - 1])
