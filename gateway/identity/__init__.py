"""Who is calling: from what a request carries to the name of a principal."""
