"""Suppliers."""
