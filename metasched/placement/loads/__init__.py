"""The loads that a placement counts with: staleness, jobs placed recently, forecasts."""
