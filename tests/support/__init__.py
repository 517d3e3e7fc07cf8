"""Real servers for tests, and the fixtures' machinery."""
