"""Grid Engine for PSI/J, which has none of its own: qsub, qstat and qdel behind its interface of batch schedulers."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from metasched.schedulers.grid_engine.commands import parsed

#: How a script begins and ends; what PSI/J reads lies beside it, named by the job's number.
_SCRIPT = """\
#!/bin/bash
#$ -S /bin/bash
#$ -o /dev/null
#$ -e /dev/null
{directives}
{exports}
exec &>> {folder}/"$JOB_ID.out"
{launch}
echo "$?" > {folder}/"$JOB_ID.ec"
"""


def executor() -> Any:
    """A new ``psij.JobExecutor`` for the cell of the environment (SGE_ROOT, SGE_CELL).

    Custom attributes become options: ``gridengine.ac`` with the value ``metasched=app=cg,n=1400`` is ``-ac``. A job of
    several processes needs a parallel environment, ``gridengine.pe``; without one it gets the first of ``qconf -spl``.

    Raises
    ------
    ImportError : when psij-python is not installed.
    """
    import psij
    from psij.executors.batch.batch_scheduler_executor import (
        BatchSchedulerExecutor,
        BatchSchedulerExecutorConfig,
        InvalidJobStateError,
        check_status_exit_code,
    )

    class GridEngineExecutor(BatchSchedulerExecutor):
        """Grid Engine as PSI/J calls it."""

        _NAME_ = "gridengine"

        def __init__(self) -> None:
            super().__init__(config=BatchSchedulerExecutorConfig())

        def generate_submit_script(self, job: psij.Job, context: dict[str, Any], submit_file: IO[str]) -> None:
            spec = job.spec
            if spec is None:
                raise psij.SubmitException("the job has no specification")
            custom = dict(spec.attributes.custom_attributes or {}) if spec.attributes else {}
            own = {
                key.partition(".")[2]: str(value)
                for key, value in custom.items()
                if key.lower().startswith("gridengine.")
            }
            environment = own.pop("pe", "")
            options = [["-N", re.sub(r"[^\w.-]|^(?=\d)", "_", spec.name or "psij")]]
            options += [["-" + key, value] for key, value in own.items()]
            if spec.directory:
                options.append(["-wd", str(spec.directory)])
            if spec.inherit_environment:
                options.append(["-V"])
            if spec.attributes and spec.attributes.queue_name:
                options.append(["-q", spec.attributes.queue_name])
            if spec.attributes and spec.attributes.account:
                options.append(["-A", spec.attributes.account])
            if "formatted_job_duration" in context:
                options.append(["-l", f"h_rt={context['formatted_job_duration']}"])
            count = 1 if spec.resources is None else int(getattr(spec.resources, "computed_process_count", 1))
            if count > 1:
                named = environment or next(iter(self._run_command(["qconf", "-spl"]).split()), "")
                if not named:
                    raise psij.SubmitException("the cell has no parallel environment for several processes")
                options.append(["-pe", named, str(count)])
            psij_context = context["psij"]
            submit_file.write(
                _SCRIPT.format(
                    directives="\n".join(f"#$ {shlex.join(words)}" for words in options),
                    exports="\n".join(
                        f"export {name}={shlex.quote(str(value))}" for name, value in (spec.environment or {}).items()
                    ),
                    folder=shlex.quote(psij_context["script_dir"]),
                    launch=shlex.join(psij_context["launch_command"]),
                )
            )

        def get_submit_command(self, job: psij.Job, submit_file_path: Path) -> list[str]:
            return ["qsub", "-terse", str(submit_file_path.absolute())]

        def job_id_from_submit_output(self, out: str) -> str:
            lines = out.split()
            if not lines or not re.fullmatch(r"[1-9][0-9]{0,18}", lines[-1]):
                raise psij.SubmitException(f"qsub prints {out[:200]!r} instead of a number")
            return lines[-1]

        def get_cancel_command(self, native_id: str) -> list[str]:
            return ["qdel", native_id]

        def process_cancel_command_output(self, exit_code: int, out: str) -> None:
            if "does not exist" in out:
                raise InvalidJobStateError
            raise psij.SubmitException(f"qdel failed with status {exit_code}: {out}")

        def get_status_command(self, native_ids: Collection[str]) -> list[str]:
            return ["qstat", "-xml", "-u", getpass.getuser()]

        def parse_status_output(self, exit_code: int, out: str) -> dict[str, psij.JobStatus]:
            check_status_exit_code("qstat", exit_code, out)
            return {
                job.findtext("JB_job_number", ""): psij.JobStatus(_state(job.findtext("state", "")))
                for job in parsed(out).iter("job_list")
            }

        def get_list_command(self) -> list[str]:
            return ["qstat", "-u", getpass.getuser()]

        def parse_list_output(self, out: str) -> list[str]:
            return [line.split()[0] for line in out.splitlines()[2:] if line.strip()]

    def _state(letters: str) -> psij.JobState:
        if "E" in letters:
            return psij.JobState.FAILED
        if "d" in letters:
            return psij.JobState.CANCELED
        return psij.JobState.ACTIVE if set(letters) & set("rtsST") else psij.JobState.QUEUED

    return GridEngineExecutor()
