"""Tests of the catalog: names, merging, templates."""
