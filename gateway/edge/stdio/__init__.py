"""One MCP server on stdin and stdout, for clients that can only start a process."""
