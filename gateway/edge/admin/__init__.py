"""The operator's side: health, metrics, and what the gateway knows, as pages and JSON."""
