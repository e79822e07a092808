"""From a query to ranked placements: the ranker, its fast path, objectives, contention and reasons."""
