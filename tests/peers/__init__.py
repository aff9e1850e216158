"""Real servers behind and real clients in front of the gateway."""
