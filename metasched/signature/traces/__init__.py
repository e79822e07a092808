"""What processes have done, call by call: traces, their loops and phases, and their calls matched with each other."""
