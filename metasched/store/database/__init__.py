"""The database through SQLAlchemy: runs, loads, models, placements, tokens, and its migrations."""
