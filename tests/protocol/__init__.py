"""Tests of messages, framing and headers: MCP on the wire as values."""
