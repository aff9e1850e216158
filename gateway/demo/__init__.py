"""Three small MCP servers to try a gateway with, and to read: `dice`, `clock`, `release`.

Each is a page, uses the standard library alone, reaches no network, and speaks every
revision of the protocol over its standard streams:

    python -m gateway.demo.dice

Read `dice` first (two tools), then `release` (resources, a prompt, subscriptions); the protocol
that they share is in `tools`, `server` and `conversation`. Nothing here imports the gateway.
"""
