"""Tests of the policy: rules, and the stages that enforce their verdicts."""
