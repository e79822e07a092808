"""Runs, loads and models: campaign files, and a database through SQLAlchemy."""
