"""The gateway under an operator's hands: changed while it runs, starved, watched, ended."""
