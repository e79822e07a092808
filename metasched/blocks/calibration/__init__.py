"""Parameters of blocks from measurements: Table 1's forms as published, and forms that held-out error chooses."""
