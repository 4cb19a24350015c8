"""What happened minute by minute, kept in the database: the console's plots need nothing beside it."""
