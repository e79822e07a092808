rounds = 5
operations = 1e9
bytes = 200000


def master():
    for i in range(rounds):
        for k in range(len(slave)):
            send(slave[k], bytes)
        for k in range(len(slave)):
            recv(slave[k])


def slave():
    for i in range(rounds):
        recv(master)
        compute(operations)
        send(master, bytes)
