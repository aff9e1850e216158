"""Three small example servers, each a page: dice, clock and release."""
