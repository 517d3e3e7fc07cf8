"""The nouns: frozen values that cross borders, and the one table of states and transitions."""
