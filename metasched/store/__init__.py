"""Storage: files, the database, model documents, and a spool for data that the database could not store yet."""
