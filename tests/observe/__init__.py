"""What the record, the metrics and the log say happened."""
