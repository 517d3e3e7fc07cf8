"""What stands between a step and the world: retries."""
