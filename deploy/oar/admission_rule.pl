# metasched: asks where this job should run; see docs/oar.md. Whatever fails, the job stays as it was.
# Its priority is higher than that of all other rules, since it is to see the job as it will be submitted.
{
    local ($@, $!, $?);
    my ($metasched_command, $metasched_properties) = eval {
        local $SIG{__DIE__} = 'DEFAULT';
        require '/etc/oar/metasched/metasched_oar.pl';
        Metasched::placed(
            {
                user => $user, name => $job_name, command => $command, kind => $jobType, hold => $job_hold,
                reservation => $reservationField, after => $anterior_ref, types => $type_list,
                array => $array_job_nb, parameters => $array_params_ref, properties => $jobproperties,
                resources => $ref_resource_list,
            },
            sub { list_resource_properties_fields($dbh_ro) },
            sub { estimate_job_nb_resources($dbh_ro, $ref_resource_list, $_[0]) },
        );
    };
    ($command, $jobproperties) = ($metasched_command, $metasched_properties) if defined($metasched_properties);
}
