"""What a site's accounting tells: job logs, run times and waits of jobs that name no problem size, and replays."""
