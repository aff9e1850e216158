"""One gate for all your MCP servers: the map of the house, in the order of a call.

    cli         commands a person types; `serve` starts the gateway
    app         puts everything together from the configuration: starts, reloads, stops
    edge        the HTTP endpoint clients call, and the operator's pages
    eras        between each era of MCP and the neutral call; the eras never meet
    calls       the neutral call, and the stages it passes through
    policy      what may be called, by whom, how often, for how long
    identity    who is calling: bearer tokens, and the principal each stands for
    observe     what happened: the record of calls, metrics, logs
    catalog     what the gateway offers: names, routes, snapshots of what servers list
    downstream  the servers: processes, links, supervision
    config      the configuration file as frozen values
    protocol    MCP on the wire as values: messages, revisions, errors, framing
    clients     the files of MCP clients, read and written (to come)
    demo        three small example servers; they stand alone

Imports point down only: cli, app, edge | downstream, eras, policy | observe | identity, calls,
catalog, config, protocol. `pyproject.toml` holds the contracts, `tests/test_architecture.py` runs
them.
"""

__version__ = "0.1.0"
