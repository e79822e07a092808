items = 3e7
compare = 40
merge = 20


def sorter():
    mask = 1
    while mask < size and rank % (2 * mask) == 0:
        mask = 2 * mask
    if rank > 0:
        recv(sorter[rank - mask])
    half = mask
    while half > 1:
        half = half / 2
        send(sorter[rank + half], 8 * items * half / size)
    compute(compare * items / size * log2(items / size))
    while half < mask:
        recv(sorter[rank + half])
        compute(2 * merge * items * half / size)
        half = 2 * half
    if rank > 0:
        send(sorter[rank - mask], 8 * items * mask / size)
