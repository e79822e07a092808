"""What the daemon does by itself: the schedule, views for placements, and the upkeep of the database."""
