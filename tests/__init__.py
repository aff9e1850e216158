"""The tests: folders mirror the package; `kit` holds what they share."""
