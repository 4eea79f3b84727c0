"""The permissions of an operator that runs as a process of this machine: those of the shipped
manifests and no others.
"""

import functools
import json
from pathlib import Path
from typing import Callable, Dict, List

from cluster import ROOT, Cluster, Namespace

RBAC = ROOT / "elasticdl/manifests/tfjob-operator/operator/rbac.yaml"
NAME = "operator-of-tests"


def edited_config(namespace: Namespace, path: Path, edit: Callable[[Dict, Dict], None]) -> Path:
    """The kubeconfig with changes to its cluster and its user."""
    config = json.loads(namespace.kubectl("config", "view", "--raw", "-o", "json"))
    edit(config["clusters"][0]["cluster"], config["users"][0])
    path.write_text(json.dumps(config))
    return path


def config_with_token(namespace: Namespace, path: Path, account: str) -> Path:
    """A kubeconfig whose user is this service account."""
    token = namespace.kubectl("create", "token", account)

    def edit(_: Dict, user: Dict) -> None:
        user["user"] = {"token": token}

    return edited_config(namespace, path, edit)


@functools.lru_cache(maxsize=None)
def shipped_rules(cluster: Cluster, kind: str) -> List[Dict]:
    """The rules of the shipped Role or ClusterRole of the operator."""
    printed = cluster("kubectl", "create", "--dry-run=client", "-o", "json", "-f", str(RBAC))
    (found,) = [item["rules"] for item in json.loads(printed.join("[]").replace("}\n{", "},\n{"))
                if item["kind"] == kind and item["metadata"]["name"] == "training-operator"]
    return found


def config_with_shipped_rights(namespace: Namespace, path: Path) -> Path:
    """A kubeconfig with the permissions of the shipped manifests. Those of the Role are in this
    namespace, which has the lease."""
    group = "rbac.authorization.k8s.io"
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace.name}
    of_cluster = f"{NAME}-{namespace.name}"  # the namespace deletes what is in it, and this stays

    def bind(kind: str, name: str) -> Dict:
        return {"apiVersion": f"{group}/v1", "kind": f"{kind}Binding", "metadata": {"name": name},
                "subjects": [account], "roleRef": {"apiGroup": group, "kind": kind, "name": name}}

    namespace.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}},
        *({"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name},
           "rules": shipped_rules(namespace.cluster, kind)}
          for kind, name in (("Role", NAME), ("ClusterRole", of_cluster))),
        bind("Role", NAME), bind("ClusterRole", of_cluster))
    return config_with_token(namespace, path, NAME)
