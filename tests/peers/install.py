"""Install the real servers and clients, each in an environment of its own: versions are pinned.

`python -m tests.peers.install` does it all at once; the tests install what they need.
"""

from pathlib import Path

from tests.kit.installs import environment, node_bin, npm_packages

# One environment for each SDK, and with it the servers that are written on it.
ENVIRONMENTS = {
    "mcp-1": ["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"],
    "mcp-2": [
        "mcp==2.3.0",
        "fastmcp==4.2.3",
        "mcp-server-time==2026.10.19",
        "mcp-server-git==2026.10.19",
    ],
    # The oldest of 1.x, of November 2024: before Streamable HTTP.
    "mcp-first": ["mcp==1.0.0"],
    # The oldest that speaks 2025-03-26.
    "mcp-early": ["mcp==1.9.0", "pydantic==2.10.6"],
    # The oldest that speaks 2025-06-18.
    "mcp-middle": ["mcp==1.10.0", "pydantic==2.10.6"],
    # Dies of any request before `initialize`, as all before 1.9.4 do.
    "mcp-old": ["mcp==1.6.0", "pydantic==2.10.6"],
}
NPM = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/inspector@2.12.0",
    "mcp-remote@0.15.1",
]
# The TypeScript SDK 2.x: a package for each side, beside the one package of 1.x.
SDK_2 = ["@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/client@2.4.0"]


def scripts(name: str) -> Path:
    """The folder of programs of one of the environments."""
    return environment(f"peers/{name}", ENVIRONMENTS[name])


def python(name: str) -> str:
    """The interpreter of one of the environments."""
    return str(scripts(name) / "python")


def node() -> str:
    """The Node.js that runs the npm packages."""
    return str(node_bin() / "node")


def npm_folder() -> Path:
    """The folder with the npm packages in its `node_modules`."""
    return npm_packages("peers/npm", NPM)


def sdk_2() -> Path:
    """The folder with the TypeScript SDK 2.x in its `node_modules`."""
    return npm_packages("peers/sdk-2", SDK_2)


def npm_program(name: str) -> str:
    """The path of a script that an npm package calls its program; run it by `node()`."""
    return str((npm_folder() / "node_modules" / ".bin" / name).resolve())


def main() -> None:
    for name in ENVIRONMENTS:
        print(f"{name}: {python(name)}")
    print(f"npm: {npm_folder()}")
    print(f"sdk-2: {sdk_2()}")


if __name__ == "__main__":
    main()
