"""The documentation says what is true of the code."""
