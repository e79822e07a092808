"""Models carried from a reference platform to a target platform, Eq. (3), that go on learning there."""
