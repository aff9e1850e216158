"""How fast and how big the gateway is, beside other gateways and beside what is possible at all.

`python -m tests.bench` (or `make bench`) prints the table of docs/speed.md. Not part of the tests:
no test fails for being slow on a busy machine. test_bench.py only sees that all of this works.
"""
