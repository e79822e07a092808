"""A metascheduler over sites that share no file system: each site's daemon predicts, and one ranking follows."""
