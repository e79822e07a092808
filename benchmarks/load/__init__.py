"""The daemon under load, on the loopback: placements beside the loads of a thousand nodes."""
