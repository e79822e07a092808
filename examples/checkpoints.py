"""An iterative program that writes its own checkpoints, so that its job may be moved while it runs.

``checkpoints.py STATE POINTS STEPS [PAUSE]`` follows the heat in a rod of POINTS points for STEPS steps. It begins at
the step that the file STATE holds, if there is one, and writes that file every few steps and when it is asked to end:
SIGTERM is what a scheduler sends before it takes the nodes away. PAUSE is how long each step rests (s), which makes a
short demonstration as long as wanted.

    sbatch --comment=metasched:app=heat,n=10000,checkpoint=5 --requeue heat.sh

where ``heat.sh`` ends with ``exec python3 checkpoints.py heat.json 10000 5000``.

``checkpoint=5`` says that stopping and starting again takes this program 5 s, and that its job may be moved.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

#: Steps between two checkpoints, and how much of the difference to its neighbours a point takes over in a step.
EVERY, RATE = 50, 0.4


def step(rod: list[float]) -> list[float]:
    """The rod a step later; its ends are held at their temperatures.

    Examples
    --------
    >>> step([1.0, 0.0, 0.0])
    [1.0, 0.4, 0.0]
    """
    inner = [
        here + RATE * (left - 2.0 * here + right) for left, here, right in zip(rod, rod[1:], rod[2:], strict=False)
    ]
    return [rod[0], *inner, rod[-1]]


def read(state: Path, points: int) -> tuple[int, list[float]]:
    """The step and the rod of a checkpoint; the beginning where there is none."""
    if not state.exists():
        return 0, [1.0] + [0.0] * (points - 1)
    kept = json.loads(state.read_text(encoding="utf-8"))
    return int(kept["step"]), [float(each) for each in kept["rod"]]


def write(state: Path, number: int, rod: list[float]) -> None:
    """Write a checkpoint whole or not at all."""
    beside = state.with_suffix(".new")
    beside.write_text(json.dumps({"step": number, "rod": rod}), encoding="utf-8")
    os.replace(beside, state)


def main(words: list[str]) -> int:
    """Work from the last checkpoint on; the exit status is 0 when all steps are done."""
    state, points, steps = Path(words[0]), int(words[1]), int(words[2])
    pause = float(words[3]) if len(words) > 3 else 0.0
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    number, rod = read(state, points)
    print(f"begins at step {number}", flush=True)
    while number < steps and not signals:
        rod, number = step(rod), number + 1
        if number % EVERY == 0:
            write(state, number, rod)
        time.sleep(pause)
    write(state, number, rod)
    print(f"ends at step {number} with {sum(rod):.6f}", flush=True)
    return 0 if number == steps else 128 + signals[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
