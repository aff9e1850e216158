"""Programs that play MCP servers, well or badly."""
