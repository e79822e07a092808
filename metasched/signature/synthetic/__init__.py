"""The synthetic signature: what few processes run to measure the messages of many, and what comes of it."""
