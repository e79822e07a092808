"""Forecasters of the next value: the Network Weather Service's battery and its peers, beside what places jobs."""
