"""Clients, each written with an SDK, that all do the same things and say what they saw."""
