"""The sidecar: its manifest by Kubernetes' own schemas, its configuration by running it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy.dockerfile import stages
from tests.deploy.serving import TOKEN, adapted_config, running_shipped
from tests.deploy.shipped import DEPLOY, adapted, replaced, shipped
from tests.deploy.yaml_files import documents
from tests.kit.installs import environment
from tests.kit.processes import ROOT
from tests.kit.waiting import run

FILE = DEPLOY / "kubernetes/sidecar.yaml"
MANIFEST = {each["kind"]: each for each in documents(FILE)}
POD = MANIFEST["Deployment"]["spec"]["template"]["spec"]
(SIDECAR,) = POD["initContainers"]
(APP,) = POD["containers"]
CONFIG = yaml.safe_load(MANIFEST["ConfigMap"]["data"]["onegate.yaml"])
SECRET = "/etc/onegate/secret/token-sha256"
SCHEMAS = "kubernetes-validate==1.36.0"


def validated(file: Path, version: str) -> subprocess.CompletedProcess[str]:
    """Checked against the schemas of a release of Kubernetes, unknown fields refused."""
    command = environment("kubernetes", [SCHEMAS]) / "kubernetes-validate"
    return subprocess.run(
        [command, "-k", version, "--strict", file], capture_output=True, text=True, timeout=60
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", ["1.29", "1.36"])
def test_kubernetes_own_schemas_accept_the_manifest(version: str) -> None:
    said = validated(FILE, version)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("old", "new"),
    [("failureThreshold: 120", "failureTreshold: 120"), ("replicas: 1", 'replicas: "one"')],
)
def test_the_schemas_see_a_slip(old: str, new: str, tmp_path: Path) -> None:
    slipped = replaced(tmp_path, "sidecar.yaml", adapted(FILE.read_text(), {old: new}))
    assert validated(slipped, "1.36").returncode != 0


def test_a_changed_config_map_holds_without_a_restart() -> None:
    assert CONFIG["watch"] is True


def test_the_gateway_is_a_native_sidecar() -> None:
    assert SIDECAR["restartPolicy"] == "Always"
    assert SIDECAR["startupProbe"]["httpGet"]["path"] == "/readyz"
    assert SIDECAR["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert SIDECAR["livenessProbe"]["httpGet"]["path"] == "/livez"


def test_the_probes_reach_a_port_that_listens_beyond_the_pod_and_clients_one_that_does_not() -> (
    None
):
    ports = {port["name"]: port["containerPort"] for port in SIDECAR["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert SIDECAR[probe]["httpGet"]["port"] == "admin"
    assert CONFIG["admin"] == f"0.0.0.0:{ports['admin']}"
    assert CONFIG["listen"].startswith("127.0.0.1:")
    assert f"http://{CONFIG['listen']}/mcp" in [each.get("value") for each in APP["env"]]


def test_nobody_has_more_rights_than_needed() -> None:
    assert POD["securityContext"]["runAsNonRoot"]
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (SIDECAR, APP):
        rights = container["securityContext"]
        assert rights["runAsUser"] > 0
        assert not rights["allowPrivilegeEscalation"]
        assert rights["capabilities"] == {"drop": ["ALL"]}
    assert SIDECAR["securityContext"]["readOnlyRootFilesystem"]
    assert not POD["automountServiceAccountToken"]


def test_what_has_to_be_writable_in_the_image_is_and_everything_mounted_exists() -> None:
    mounts = {each["mountPath"]: each for each in SIDECAR["volumeMounts"]}
    image = " ".join(step.rest for step in stages(shipped("Dockerfile"))[-1].of("ENV"))
    for folder in ("/home/onegate", "/var/lib/onegate"):
        assert folder in image
    writable = {path for path, each in mounts.items() if not each.get("readOnly")}
    assert writable == {"/home/onegate", "/var/lib/onegate", "/tmp"}
    assert {each["name"] for each in mounts.values()} == {each["name"] for each in POD["volumes"]}
    assert not any("subPath" in each for each in mounts.values())  # such a file never changes


def test_the_gateway_gets_the_hash_alone_and_the_application_the_token() -> None:
    (secret,) = [each["secret"] for each in POD["volumes"] if "secret" in each]
    assert secret["items"] == [{"key": "token-sha256", "path": "token-sha256"}]
    (token,) = [each["valueFrom"]["secretKeyRef"] for each in APP["env"] if "valueFrom" in each]
    assert token == {"name": MANIFEST["Secret"]["metadata"]["name"], "key": "token"}


def test_the_kubelet_and_prometheus_see_health_and_metrics_and_nobody_sees_more(
    tmp_path: Path,
) -> None:
    pod = "10.42.7.3"  # they call it by the pod's address
    with running_shipped(tmp_path, CONFIG, SECRET) as gateway:
        seen = [gateway.admin(path, pod) for path in ("/livez", "/readyz", "/metrics")]
        assert seen == [200, 200, 200]
        assert gateway.admin("/api/servers", pod) == 401
        assert gateway.admin("/", pod, TOKEN) == 200
        assert gateway.admin("/livez", "rebound.example") == 403


def test_the_application_calls_with_its_token(tmp_path: Path) -> None:
    with running_shipped(tmp_path, CONFIG, SECRET) as gateway:
        assert run(gateway.tool_names(None)) == 401
        names = run(gateway.tool_names(TOKEN))
        assert isinstance(names, set)
        assert "time__echo" in names


def test_the_example_secret_lets_nobody_in(tmp_path: Path) -> None:
    text = MANIFEST["Secret"]["stringData"]["token-sha256"]
    file, _, _ = adapted_config(tmp_path, CONFIG, SECRET, text)
    said = subprocess.run(
        [sys.executable, "-m", "gateway", "serve", "-c", str(file)],
        cwd=ROOT, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert said.returncode == 2
    assert "sha256" in said.stderr
