"""What happened: logs, metrics and the record of calls."""
