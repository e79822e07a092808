"""The side of OpenPBS's server that runs a hook, after its published interface and stricter than it.

Run with the paths of a hook and of a job's JSON, it runs the hook as the server does, and prints what became of the
job. Reading or setting what the interface does not name is an error, as is a value of another type than it says, a
change after the event was accepted, and a text that would end a variable. An error that the hook lets through, and a
hook that ends without saying so, reject the job. Who calls this ends it after the hook's alarm. Any Python from 3.6 on.
"""

import json
import sys
import types
from typing import Any

RESOURCES = [
    "select",
    "place",
    "ncpus",
    "nodect",
    "walltime",
    "cput",
    "pcput",
    "mem",
    "ngpus",
    "host",
    "nodes",
    "software",
]
READ_ONLY = ["id", "Job_Owner", "Exit_status", "stime", "qtime", "exec_vnode", "resources_used"]
SETTABLE = ["queue", "Job_Name", "Variable_List", "Resource_List", "array_indices_submitted", "interactive", "depend",
            "Execution_Time", "Hold_Types", "project", "Account_Name", "executable", "argument_list"]  # fmt: skip


class Strict:
    """An object with these attributes and no others."""

    def __init__(self, **values):
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name):
        if name not in self._values:
            raise AttributeError("no attribute " + name)
        return self._values[name]

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute {name} cannot be set")


class Select:
    """Chunks, checked as the server does."""

    def __init__(self, text):
        for chunk in text.split("+"):
            count, *parts = chunk.split(":")
            assert count.isdigit(), text
            assert parts, text
            assert {part.split("=")[0] for part in parts} <= {"ncpus", "mpiprocs", "mem", "host", "ompthreads", "ngpus"}
        self._text = text

    def __str__(self):
        return self._text


class Duration:
    """A time limit, which is a number only when it is asked for as one."""

    def __init__(self, seconds):
        self._seconds = seconds

    def __int__(self):
        return self._seconds


class Resources:
    """What a job asks for."""

    def __init__(self, values, state):
        self._values = dict.fromkeys(RESOURCES)
        self._state = state
        for name, value in values.items():
            kinds = {"select": Select, "walltime": Duration}
            self._values[name] = kinds.get(name, lambda value: value)(value)

    def keys(self):
        return [name for name, value in self._values.items() if value is not None]

    def __getitem__(self, name):
        if name not in self._values:
            raise KeyError("no resource " + name)
        return self._values[name]

    def __setitem__(self, name, value):
        self[name]
        self._state.changing()
        if name == "select" and not isinstance(value, Select):
            raise TypeError("expected pbs.select")
        self._values[name] = value


class Variables(dict):
    """A job's variables, which are written joined by commas."""

    state: Any = None

    def __setitem__(self, name, value):
        if not isinstance(value, str) or any(letter in value for letter in ",\n;'\"\\"):
            raise ValueError(f"a variable cannot be {value!r}")
        self.state.changing()
        dict.__setitem__(self, name, value)


class Queue(Strict):
    def __str__(self):
        return self.name


class Job:
    def __init__(self, values, state):
        object.__setattr__(self, "_state", state)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name):
        if name not in READ_ONLY + SETTABLE:
            raise AttributeError(f"job attribute '{name}' not found")
        return self._values.get(name)

    def __setattr__(self, name, value):
        if name not in SETTABLE:
            raise AttributeError(f"job attribute '{name}' cannot be set")
        self._state.changing()
        if name == "queue" and value is not None and not isinstance(value, Queue):
            raise TypeError("expected pbs.queue")
        if self._state.breaks == name:
            raise ValueError("the server does not take " + name)
        self._values[name] = value


class Event:
    """What happens, until it is accepted."""

    def __init__(self, kind, breaks):
        self.type, self.breaks, self.accepted, self.requestor = kind, breaks, False, "root"

    def changing(self):
        assert not self.accepted, "changed after it was accepted"

    def accept(self):
        self.changing()
        self.accepted = True
        raise SystemExit(0)


def module(event, job, said, queues):
    pbs = types.ModuleType("pbs")

    def logmsg(level, text):
        assert isinstance(level, int)
        assert isinstance(text, str)
        assert text.isprintable()
        said.append(text)

    known = {name: Queue(name=name) for name in queues}
    seen = Strict(type=event.type, job=job, accept=event.accept, requestor=event.requestor)
    server = Strict(default_queue=known[queues[0]], queue=known.get)
    vars(pbs).update(QUEUEJOB=1, JOBOBIT=0x800000, LOG_WARNING=0x20, logmsg=logmsg, select=Select)
    vars(pbs).update(event=lambda: seen, server=lambda: server)
    return pbs, known


def main(hook, told):
    event = Event(told["event"], told.get("breaks", ""))
    values, said = told["job"], []
    pbs, known = module(event, None, said, told["queues"])
    values["Resource_List"] = Resources(values.get("Resource_List", {}), event)
    if values.get("queue"):
        values["queue"] = known.get(values["queue"]) or Queue(name=values["queue"])
    variables = Variables(values.get("Variable_List", {}))
    Variables.state = event
    values["Variable_List"] = variables
    job = Job(values, event)
    pbs, _ = module(event, job, said, told["queues"])
    sys.modules["pbs"] = pbs
    with open(hook) as file:
        text = file.read()
    try:
        exec(compile(text, hook, "exec"), {"__name__": "__builtin__"})
        verdict = "rejected: it ended without a word"
    except SystemExit:
        verdict = "accepted" if event.accepted else "rejected: it left"
    except BaseException as error:
        verdict = f"rejected: {error!r}"
    select = job.Resource_List["select"]
    after = {
        "select": select and str(select),
        "queue": job.queue and job.queue.name,
        "mark": variables.get("METASCHED"),
    }
    print(json.dumps({"verdict": verdict, "job": after, "said": said}))
    sys.stdout.flush()


if __name__ == "__main__":
    with open(sys.argv[2]) as told:
        main(sys.argv[1], json.load(told))
