"""What stands between a step and the world: flights with heartbeats, retries, breaker, pace, calls made once."""
