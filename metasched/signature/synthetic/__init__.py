"""The synthetic signature: a plan that few processes run to measure the messages of many, and the results."""
