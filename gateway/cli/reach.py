"""Where a command finds its gateway: the configuration, the admin address, the token."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.ending import Failed, Misconfigured

if TYPE_CHECKING:
    from gateway.config.aside import Reading
    from gateway.config.loaded import Loaded
    from gateway.config.units import Address

EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Listened on, these mean every interface; one cannot connect to them everywhere."""


def loaded(file: Path | None) -> "Loaded":
    """The configuration. Raises `Misconfigured` with all that is wrong with it."""
    from gateway.config.complaints import ConfigError
    from gateway.config.environ import environment
    from gateway.config.load import load

    try:
        return load(file, environment(), here())
    except ConfigError as error:
        raise Misconfigured(str(error)) from None


def begin_reading(file: Path | None) -> "Reading":
    """Have the configuration read beside this process. Raises `Misconfigured`."""
    from gateway.config.aside import NotRead, Reading
    from gateway.config.environ import environment

    try:
        return Reading(file, environment(), here())
    except NotRead as why:
        raise Misconfigured(f"{file or 'the configuration'}: cannot be read: {why}") from None


def finished(reading: "Reading") -> "Loaded":
    """The configuration that was begun to be read. Raises `Misconfigured`."""
    from gateway.config.complaints import ConfigError
    from gateway.config.outcome import outcome

    try:
        return outcome(reading)
    except ConfigError as error:
        raise Misconfigured(str(error)) from None


def here() -> Path:
    """The current folder."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Failed("the current folder does not exist any more; change to another") from None


@dataclass(frozen=True)  # without slots: what is read from the file is kept
class Reach:
    """What the options of a command say of the gateway to ask."""

    file: Path | None = None
    given: str | None = None
    """The admin address, HOST:PORT or unix:PATH, if it was given on the command line."""
    token: str | None = None

    @cached_property
    def configuration(self) -> "Loaded | None":
        """The configuration; None if nobody named one and none lies where they usually do.

        Raises `Misconfigured` if there is one that cannot be used.
        """
        from gateway.config.complaints import ConfigError
        from gateway.config.environ import environment
        from gateway.config.load import VARIABLE, find

        environ = environment()
        if self.file is None and not environ.get(VARIABLE):
            try:
                find(None, environ, here())
            except ConfigError:
                return None
        return loaded(self.file)

    def admin(self) -> "Address | None":
        """Where the gateway's operator is served; None where the configuration says `off`."""
        from gateway.config.units import Address

        if self.given is not None:
            try:
                return connectable(Address.parse(self.given.removeprefix("http://").rstrip("/")))
            except ValueError:
                said = f"--admin {self.given!r}: expected HOST:PORT or unix:PATH"
                raise Misconfigured(said) from None
        from gateway.config.model import Config

        try:
            found = self.configuration
        except Misconfigured as bad:
            hint = "To ask a running gateway without its configuration: --admin HOST:PORT"
            raise Misconfigured(f"{bad.message}\n{hint}") from None
        configured = Config().admin if found is None else found.config.admin
        return None if configured is None else connectable(configured)


def connectable(address: "Address") -> "Address":
    """The address to connect to, for one that is listened on. Raises `Failed` for port 0."""
    if address.path is None and not address.port:
        raise Failed(
            f"the admin address is {address}, so its port is chosen anew at each start; "
            "`onegate serve` tells it: give it as --admin HOST:PORT"
        )
    return replace(address, host=EVERYWHERE.get(address.host, address.host))
