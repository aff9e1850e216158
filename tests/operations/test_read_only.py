"""Nothing can be written: not the home, not the folder it runs in, not even the root."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.fakes import fake
from tests.kit.gateway import Gateway
from tests.kit.http import Modern
from tests.kit.waiting import eventually, run
from tests.operations.starving import Want, logged, starving_gateway

SERVERS = {name: fake("--only", "echo", "--without", "resources") for name in ("a", "b", "c", "d")}
HOMELESS = {"HOME": "/proc/none", "XDG_STATE_HOME": "", "ONEGATE_STATE": ""}

IN_READ_ONLY_ROOT = """set -e
mount --make-rprivate /
mount -o remount,bind,ro /
mount -t tmpfs none /dev/shm
if touch "$0" 2>/dev/null; then echo "not read-only" >&2; exit 3; fi
exec "$@"
"""


WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root as anybody else: what it may not write, it cannot."""


def serves(gateway: Gateway) -> None:
    gateway.wait_tools(*(f"{name}__echo" for name in SERVERS))

    async def conversation() -> None:
        async with Modern.to(gateway.url) as client:
            for name in SERVERS:
                assert (await client.call(f"{name}__echo", {"text": name})).text == name

    run(conversation())


def warnings(gateway: Gateway) -> list[str]:
    """Their events, once there is one."""
    eventually(lambda: logged(gateway, "memory.unwritable"), what="a warning")
    (told,) = logged(gateway, "memory.unwritable")
    assert "ONEGATE_STATE" in told["remedy"]
    lines = (line for line in gateway.text.splitlines() if '"level":"warning"' in line)
    return [json.loads(line)["event"] for line in lines]


def test_a_home_that_cannot_be_written_costs_one_warning(tmp_path: Path) -> None:
    want = Want(env=HOMELESS, cwd="/proc")
    with starving_gateway(tmp_path, SERVERS, want) as gateway:
        serves(gateway)
        assert warnings(gateway) == ["memory.unwritable"]


def test_no_home_at_all_costs_nothing(tmp_path: Path) -> None:
    want = Want(env={**HOMELESS, "HOME": "", "USERPROFILE": ""}, cwd="/proc")
    with starving_gateway(tmp_path, SERVERS, want) as gateway:
        serves(gateway)
        assert not logged(gateway, "memory.unwritable")


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write everything"
)
def test_a_home_of_somebody_else_costs_one_warning(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    around = WITHOUT_RIGHTS if os.geteuid() == 0 else ()
    want = Want(env={**HOMELESS, "HOME": str(home)}, cwd=home, around=around)
    with starving_gateway(tmp_path, SERVERS, want) as gateway:
        serves(gateway)
        assert warnings(gateway) == ["memory.unwritable"]
    assert not list(home.iterdir())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root")
def test_a_read_only_root_serves(tmp_path: Path) -> None:
    script = tmp_path / "read-only.sh"
    script.write_text(IN_READ_ONLY_ROOT)
    inside = ("unshare", "--mount", "sh", str(script))
    if subprocess.run([*inside, "true"], capture_output=True, timeout=20).returncode:
        pytest.skip("mounts may not be changed here")
    want = Want(env={**HOMELESS, "HOME": str(tmp_path)}, cwd="/", around=inside)
    with starving_gateway(tmp_path, SERVERS, want) as gateway:
        serves(gateway)
        assert warnings(gateway) == ["memory.unwritable"]
