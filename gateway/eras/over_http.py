"""Which era's manner a connection over HTTP has."""

from gateway.eras.legacy.over_http import LegacyManner
from gateway.eras.manner import Learnt, Manner
from gateway.eras.modern.over_http import ModernManner
from gateway.protocol.revisions import Era


def manner_of(era: Era, learnt: Learnt) -> Manner:
    """For one new connection."""
    return ModernManner(learnt) if era is Era.MODERN else LegacyManner(learnt)
