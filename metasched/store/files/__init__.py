"""Files that users and metasched write: campaigns, models, descriptions, profiles; whole or not at all."""
