"""Flux's side of a frobnicator plugin, after its published interface: a job specification whose keys are checked."""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

from deployed_files import copy_deployed

SPEC: dict[str, Any] = {
    "version": 1,
    "resources": [{"type": "slot", "count": 2, "label": "task", "with": [{"type": "core", "count": 1}]}],
    "tasks": [{"command": ["./cg"], "slot": "task", "count": {"per_slot": 1}}],
    "attributes": {"system": {"duration": 500, "queue": "new"}, "user": {"metasched": "app=cg,n=1400"}},
}


class Jobspec:
    """A job; ``breaks`` is the attribute that is not taken."""

    __slots__ = ("_breaks", "jobspec")

    def __init__(self, spec: dict[str, Any], breaks: str) -> None:
        self.jobspec, self._breaks = copy.deepcopy(spec), breaks

    def setattr(self, key: str, value: str) -> None:
        """Set an attribute by its path, one of a job or of its user."""
        room, _, name = key.partition(".")
        assert room in ("system", "user"), key
        assert isinstance(value, str)
        if key == self._breaks:
            raise ValueError(f"no such {key}")
        self.jobspec["attributes"].setdefault(room, {})[name] = value


def frobbed(folder: Path, conf: str, spec: dict[str, Any] = SPEC, breaks: str = "", *, shared: bool = True) -> Any:
    """The attributes of a job after the plugin with these settings; an exception of it would reject the job."""
    copy_deployed(folder, "flux", *(["hooks"] if shared else []))
    (folder / "hooks.conf").write_bytes(os.fsencode(conf))
    flux = {name: types.ModuleType(name) for name in ("flux", "flux.job", "flux.job.frobnicator")}
    vars(flux["flux.job.frobnicator"])["FrobnicatorPlugin"] = type("FrobnicatorPlugin", (), {"__init__": _configured})
    before, path_before = dict(sys.modules), list(sys.path)
    sys.modules.update(flux)
    try:
        found = importlib.util.spec_from_file_location("metasched_flux", folder / "metasched_flux.py")
        assert found is not None
        assert found.loader is not None
        plugin = importlib.util.module_from_spec(found)
        found.loader.exec_module(plugin)
        jobspec = Jobspec(spec, breaks)
        assert plugin.Frobnicator(parser=None).frob(jobspec, 1000, 16, 0) is None
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.path[:] = path_before
    without = {key: value for key, value in jobspec.jobspec.items() if key != "attributes"}
    assert without == {key: value for key, value in spec.items() if key != "attributes"}
    return jobspec.jobspec["attributes"]


def _configured(self: object, parser: object) -> None:
    del self, parser


def changed(folder: Path, conf: str) -> dict[str, Any]:
    """What the plugin changed of the usual job."""
    after = frobbed(folder, conf)
    return {} if after == SPEC["attributes"] else dict(after)
