# Asks metasched where a job of OAR should run, for the admission rule beside it.
#
# Needs Perl's own modules alone. All of the asking is done by metasched_oar.py, as for other schedulers: here it is
# started, without a shell, waited for until the deadline, and what it prints is checked, since it becomes part of a
# condition in SQL.
package Metasched;

use strict;
use warnings;
use Errno qw(EINTR);
use File::Basename qw(dirname);
use File::Spec;
use IO::Select;
use JSON::PP;
use POSIX ();
use Time::HiRes qw(time);

# How long metasched_oar.py may take in all (s): its own deadline, and the start of Python on a busy host.
our $DEADLINE = 4;
# What is sent and read at most (bytes).
our ($MOST_SENT, $MOST_READ) = (60000, 4096);
our $SCRIPT = dirname(File::Spec->rel2abs(__FILE__)) . '/metasched_oar.py';
our $PYTHON = '/usr/bin/python3';

# The command and the properties of a job that is to be placed, nothing where it stays as it is.
#
# $job is what OAR knows of it, $fields gives the properties that resources have, and $estimate tells how many resources
# there are for it with other properties, as OAR itself asks before it takes a job.
sub placed {
    my ($job, $fields, $estimate) = @_;
    return unless defined($job->{command}) and length($job->{command});
    # A job without a name is none that states its problem size.
    my $says = $job->{command} =~ /\AMETASCHED=/;
    return unless $says ? $job->{command} =~ /\AMETASCHED=\S{1,500}\s/ : length($job->{name} // '');
    my $said = _asked(JSON::PP->new->utf8->allow_nonref->encode($job));
    my ($property, $partition, $mark) = $said =~ /\A(\w{1,63})\n([\w.-]{1,255})\n([A-Za-z0-9_=.,+-]{0,500})\n\z/a;
    return unless defined($mark) and ($mark eq '') == !$says;
    my %known = $fields->();
    return unless $known{$property};
    my $given = defined($job->{properties}) ? $job->{properties} : '';
    my $properties = $given eq '' ? "$property = '$partition'" : "($given) AND $property = '$partition'";
    my @estimates = $estimate->($properties);
    return if !@estimates or grep { !$_->{nbresources} } @estimates;
    my $command = $job->{command};
    $command =~ s/\AMETASCHED=\S+/METASCHED=$mark/ if $says;
    return ($command, $properties);
}

# What metasched_oar.py prints when it is given a text, empty where that takes too long.
sub _asked {
    my ($text) = @_;
    die "the job is too long\n" if length($text) > $MOST_SENT;
    my $ends = time() + $DEADLINE;
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{CHLD} = 'DEFAULT';
    pipe(my $from_us, my $to_child) or die "no pipe: $!\n";
    pipe(my $from_child, my $to_us) or die "no pipe: $!\n";
    my $pid = fork();
    die "no process: $!\n" unless defined($pid);
    if ($pid == 0) {
        POSIX::dup2(fileno($from_us), 0);
        POSIX::dup2(fileno($to_us), 1);
        my $null = POSIX::open('/dev/null', POSIX::O_WRONLY());
        POSIX::dup2($null, 2) if defined($null);
        { no warnings; exec { $PYTHON } $PYTHON, '-I', '-S', $SCRIPT; }
        POSIX::_exit(127);
    }
    close($from_us);
    close($to_us);
    my $said = '';
    my $whole = eval {
        # A pipe holds more than is sent, so this does not wait.
        syswrite($to_child, $text);
        close($to_child);
        my $select = IO::Select->new($from_child);
        while (1) {
            my $left = $ends - time();
            die "no answer in time\n" if $left <= 0;
            next unless $select->can_read($left);
            my $got = sysread($from_child, $said, 1024, length($said));
            next if !defined($got) and $! == EINTR;
            die "no answer\n" unless defined($got);
            die "the answer is too long\n" if length($said) > $MOST_READ;
            last if $got == 0;
        }
        1;
    };
    kill('KILL', $pid);
    waitpid($pid, 0);
    return $whole ? $said : '';
}

1;
