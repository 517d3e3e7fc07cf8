"""Requests to a supplier over HTTP."""
