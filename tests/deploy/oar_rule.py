"""The admission rule of OAR as oarsub evaluates it: in Perl, with the variables that it has there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
#: What a job has, by the names of OAR's variables.
JOB: dict[str, Any] = {
    "user": "1000", "job_name": "cg", "command": "METASCHED=app=cg,n=500 ./cg.sh", "jobType": "PASSIVE",
    "job_hold": None, "reservationField": "None", "anterior_ref": None, "type_list": [], "array_job_nb": 1,
    "array_params_ref": [], "jobproperties": "desktop_computing = 'NO'",
    "ref_resource_list": [
        [[{"property": "type = 'default'", "resources": [{"resource": "network_address", "value": "2"},
                                                         {"resource": "core", "value": 1}]}], 7200],
    ],
}  # fmt: skip
#: Evaluates a rule as OAR::IO does, which refuses the job if that dies.
DRIVER = r"""
use strict; use warnings; use JSON::PP;
my ($job, $fields, $estimate) = @{decode_json(do { local $/; <STDIN> })};
sub list_resource_properties_fields { return map { $_ => 1 } @$fields }
sub estimate_job_nb_resources {
    my (undef, undef, $properties) = @_;
    die "estimated\n" if $estimate eq 'dies';
    return { nbresources => ($properties =~ /cluster = '(new|old)'$/ && $estimate eq 'enough') ? 4 : 0 };
}
my ($dbh_ro, $queue_name) = (undef, 'default');
my ($user, $job_name, $command, $jobType, $job_hold, $reservationField, $anterior_ref, $type_list, $array_job_nb,
    $array_params_ref, $jobproperties, $ref_resource_list) = @$job{qw(user job_name command jobType job_hold
    reservationField anterior_ref type_list array_job_nb array_params_ref jobproperties ref_resource_list)};
open(my $file, '<', $ARGV[0]) or die;
my $rules = do { local $/; <$file> };
eval $rules;
print encode_json({refused => "$@", command => $command, jobproperties => $jobproperties,
    resources => $ref_resource_list, types => $type_list, queue => $queue_name});
"""


def why_not() -> str:
    """Why the rule cannot be evaluated here, empty where it can."""
    return "" if shutil.which("perl") else "Perl is not installed"


def judged(
    folder: Path, settings: str, job: dict[str, Any] | None = None, *, fields: tuple[str, ...] = ("cluster", "core"),
    estimate: str = "enough", missing: str = "",
) -> dict[str, Any]:  # fmt: skip
    """What became of a job.

    Parameters
    ----------
    folder : for the rule and its settings.
    settings : lines of hooks.conf.
    job : what it has otherwise than ``JOB``.
    fields : the properties of OAR's resources.
    estimate : whether there are ``enough`` resources, none, or OAR ``dies`` of the question.
    missing : a file that is not there.
    """
    for path in (*(DEPLOYED / "oar").iterdir(), *(DEPLOYED / "hooks").iterdir()):
        if path.is_file() and path.name != missing:
            shutil.copy(path, folder)
    rule = (folder / "admission_rule.pl").read_text().replace("/etc/oar/metasched", str(folder))
    (folder / "rule").write_text(rule)
    (folder / "hooks.conf").write_bytes(os.fsencode(settings))
    (folder / "driver.pl").write_text(DRIVER)
    given = json.dumps([JOB | (job or {}), fields, estimate])
    done = subprocess.run(
        ["perl", str(folder / "driver.pl"), str(folder / "rule")], input=given, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def changed(folder: Path, settings: str, **more: Any) -> dict[str, Any]:
    """What of a job was changed; that it was refused, where it was."""
    job = JOB | (more.get("job") or {})
    before = {"refused": "", "command": job["command"], "jobproperties": job["jobproperties"],
              "resources": job["ref_resource_list"], "types": job["type_list"], "queue": "default"}  # fmt: skip
    found = judged(folder, settings, **more)
    return {key: value for key, value in found.items() if before[key] != value}
