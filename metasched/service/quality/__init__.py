"""How good the advice was: predictions beside outcomes, and the verdict on both."""
