"""Raw records in, exact rows and named rejects out; pure computation, no I/O."""
