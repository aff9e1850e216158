"""What both sides of the bridge stand on."""

from dataclasses import dataclass

from gateway.edge.stdio.keeping import Keeping
from gateway.edge.stdio.mouth import Mouth
from gateway.edge.stdio.way import Way
from gateway.edge.stdio.work import Work
from gateway.eras.manner import Learnt
from gateway.protocol.jsonrpc import Fields


@dataclass(frozen=True, slots=True)
class Footing:
    way: Way
    mouth: Mouth
    work: Work
    keeping: Keeping
    learnt: Learnt
    us: Fields
    """Our `serverInfo`, for as long as the gateway has not said its own."""
