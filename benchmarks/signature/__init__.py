"""The numbers of the paper, and the applications whose expansion is judged."""
