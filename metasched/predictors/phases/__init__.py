"""Models of applications whose phases differ, and whose processes have unequal shares of the work: Eq. (4)."""
