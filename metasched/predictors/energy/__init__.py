"""Energy and clock beside time: how times follow the frequency, what power runs draw, and joules as their product."""
