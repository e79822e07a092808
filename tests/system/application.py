"""A parallel application that needs no processors: it sleeps for as long as it would have run. Run inside a job:

``application.py TRACES N P NUMBER``, on the nodes that Slurm gave it, with

    T = (max over its nodes of the time in which the integral of available_cpu reaches N^1.5 / (1000 P)
         + 0.002 N (P - 1) 100 / (smallest available_bandwidth of its nodes at the start)) * noise

so that it really depends on N, P and on what its nodes have to spare while it runs. The noise is log-normal with a
spread of 3 %, the same for one submission NUMBER wherever it runs. Standard library only, so that it starts at once.
"""

import json
import math
import os
import random
import re
import sys
import time

NOISE = 0.03
LEAST_CPU = 0.01


def unfold(folded):
    """Names such as a1 and a[1-2,4] in one list."""
    names = []
    for prefix, inside, plain in re.findall(r"(\w+)\[([\d,-]+)\]|(\w+)", folded):
        for part in inside.split(",") if inside else ():
            low, _, high = part.partition("-")
            names += [f"{prefix}{number}" for number in range(int(low), int(high or low) + 1)]
        names += [plain] if plain else []
    return names


def level(traces, node, kind, at):
    """What a node had to spare at a moment (s since 1970): a sample holds until the next, the last for ever."""
    values = traces["nodes"][node][kind]
    step = int((at - traces["origin"]) / traces["step"])
    return values[min(max(step, 0), len(values) - 1)]


def computing(traces, node, work, start):
    """Seconds from the start until a processor of the node has done so many seconds of work."""
    now, left = start, work
    while True:
        share = max(level(traces, node, "cpu", now), LEAST_CPU)
        elapsed = (now - traces["origin"]) % traces["step"]
        until = now + max(traces["step"] - elapsed, 1e-6)
        if left <= share * (until - now):
            return now + left / share - start
        left -= share * (until - now)
        now = until


def execution_time(traces, size, processors, nodes, start, number):
    """The formula above (s)."""
    compute = max(computing(traces, node, size**1.5 / (1000 * processors), start) for node in nodes)
    bandwidth = min(level(traces, node, "bandwidth", start) for node in nodes)
    communicate = 0.002 * size * (processors - 1) * 100.0 / bandwidth
    return (compute + communicate) * math.exp(random.Random(number).gauss(0.0, NOISE))


def main():
    """Sleep until the time is over."""
    start = time.time()
    with open(sys.argv[1]) as file:
        traces = json.load(file)
    size, processors, number = (int(word) for word in sys.argv[2:5])
    nodes = unfold(os.environ["SLURM_JOB_NODELIST"])
    time.sleep(max(0.0, start + execution_time(traces, size, processors, nodes, start, number) - time.time()))


if __name__ == "__main__":
    main()
