"""The commands a person types, a module for each group of them."""
