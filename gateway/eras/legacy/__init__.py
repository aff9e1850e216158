"""Revisions up to 2025-11-25: an initialize handshake, sessions, questions from servers."""
