"""Ways to reach a server. Each moves whole messages and knows nothing of their meaning."""
