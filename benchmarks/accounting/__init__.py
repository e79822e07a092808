"""How long it takes to take accounting in, to learn it again, to ask it, and to lead a long queue on."""
