"""An MCP server over stdio, both eras, that can do everything: for tests of the gateway."""
