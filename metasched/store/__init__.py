"""What is kept: files, the database, model documents, and a spool for what the database could not take yet."""
