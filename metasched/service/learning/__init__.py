"""What becomes of finished jobs: matched with their placement, confirmed, stored and learned."""
