"""Valid objects of kinds that kube-apiserver 1.20 and later serve, and changes of them, valid or not."""

import copy

NAMESPACE = "fuzz"
POD = {"containers": [{"name": "c", "image": "registry/app:1.0"}]}
RICH_POD = {
    "containers": [{
        "name": "main", "image": "registry/app", "args": ["--a", "b"], "ports": [{"containerPort": 80, "name": "http"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
        "livenessProbe": {"httpGet": {"port": 80, "path": "/healthz"}}, "readinessProbe": {"tcpSocket": {"port": "http"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}], "securityContext": {"runAsUser": 1000}},
        {"name": "side", "image": "registry/side@sha256:" + "0" * 64, "command": ["run"]}],
    "initContainers": [{"name": "init", "image": "registry/init:latest"}],
    "volumes": [{"name": "config", "configMap": {"name": "c"}}, {"name": "secret", "secret": {"secretName": "s"}},
                {"name": "scratch", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/x"}}],
    "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "k", "operator": "Exists"}], "serviceAccountName": "default"}
LABELS = {"app": "a"}


def template(pod):
    return {"metadata": {"labels": dict(LABELS)}, "spec": copy.deepcopy(pod)}


def job_template(pod):
    return {"metadata": {}, "spec": {**copy.deepcopy(pod), "restartPolicy": "Never"}}


SELECTOR = {"matchLabels": dict(LABELS)}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}

# (API version, kind, plural, namespaced, fields): what operators write. Not here: kinds whose values kube-devserver does not validate.
BASES = [
    ("v1", "ConfigMap", "configmaps", True, {"data": {"a": "1", "b": "2"}}),
    ("v1", "Secret", "secrets", True, {"stringData": {"a": "x"}, "data": {"b": "eQ=="}}),
    ("v1", "ServiceAccount", "serviceaccounts", True, {"automountServiceAccountToken": False}),
    ("v1", "Service", "services", True, {"spec": {"selector": LABELS, "ports": [{"port": 80}]}}),
    ("v1", "Service", "services", True, {"spec": {"type": "NodePort", "selector": LABELS, "ports": [
        {"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "protocol": "UDP"}]}}),
    ("v1", "Service", "services", True, {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    ("v1", "Service", "services", True, {"spec": {"clusterIP": "None", "selector": LABELS, "ports": [{"port": 80}]}}),
    ("v1", "Pod", "pods", True, {"spec": POD}),
    ("v1", "Pod", "pods", True, {"spec": RICH_POD}),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}, "storageClassName": ""}}),
    ("v1", "Namespace", "namespaces", False, {}),
    ("apps/v1", "Deployment", "deployments", True, {"spec": {"selector": SELECTOR, "template": template(POD)}}),
    ("apps/v1", "Deployment", "deployments", True, {"spec": {
        "replicas": 2, "selector": SELECTOR, "template": template(RICH_POD), "strategy": {"type": "Recreate"}}}),
    ("apps/v1", "ReplicaSet", "replicasets", True, {"spec": {"selector": SELECTOR, "template": template(POD)}}),
    ("apps/v1", "DaemonSet", "daemonsets", True, {"spec": {"selector": SELECTOR, "template": template(POD)}}),
    ("apps/v1", "StatefulSet", "statefulsets", True, {"spec": {
        "serviceName": "s", "selector": SELECTOR, "template": template(POD)}}),
    ("batch/v1", "Job", "jobs", True, {"spec": {"template": job_template(POD)}}),
    ("networking.k8s.io/v1", "Ingress", "ingresses", True, {"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", True, {"spec": {
        "podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", True, {"rules": [RULE]}),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False, {"rules": [RULE]}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", True, {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}]}),
    ("coordination.k8s.io/v1", "Lease", "leases", True, {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", False, {"provisioner": "example.com/p"}),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False, {"value": 1000}),
    ("fuzz.io/v1", "Widget", "widgets", True, {"spec": {"size": 3, "parts": [{"name": "a", "count": 1}], "tags": ["x"]}}),
    ("fuzz.io/v1", "Widget", "widgets", True, {"spec": {
        "size": 1, "mode": "fast", "any": {"known": "k", "x": 1}, "maybe": "x"}}),
]

# Kinds of which lists have more than one object: those that are the same in all versions.
BESIDE = [(api, kind, plural, fields) for api, kind, plural, namespaced, fields in BASES
          if kind in ("ConfigMap", "Secret", "ServiceAccount", "Role", "Lease", "PersistentVolumeClaim")]

# Without x-kubernetes-int-or-string, of which 1.20 can't make a model: it then deduces the types of what is applied. `any` declares one
# field: what is below an object that declares none has one owner as a whole in 1.20 (kube-openapi's schemaconv, VisitArbitrary), and is
# owned field by field later.
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.fuzz.io"},
    "spec": {
        "group": "fuzz.io", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                "spec": {"type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "minimum": 0, "maximum": 10},
                    "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                    "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 8},
                    "any": {"x-kubernetes-preserve-unknown-fields": True, "type": "object", "properties": {"known": {"type": "string"}}},
                    "maybe": {"type": "string", "nullable": True},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
                    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                        "type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"}, "count": {"type": "integer", "default": 1}}}}}},
                "status": {"type": "object", "properties": {"size": {"type": "integer"}, "phase": {"type": "string"}}}}}}}]}}

# Writes of the status alone: what else such a request has is not owned since 1.21, and would be different everywhere.
STATUS = {
    "Widget": [{"size": 1, "phase": "a"}, {"phase": 1}, {"other": 1}],
    "Deployment": [{"observedGeneration": 1, "replicas": 1}, {"replicas": "a"}, {"replicas": -1}],
    "ReplicaSet": [{"replicas": 1}],
    "Ingress": [{"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}],
}

# Values for fields: of the right type, of a wrong one, or at the edge of what is valid.
VALUES = ["text", "a-b", "", "UPPER", "1", "80", 0, 1, 2, 3, -1, 65536, 2 ** 40, 1.5, True, False, None, [], {}, ["x"], {"a": "b"}]


# kube-apiserver 1.20 that is built with Go 1.19 takes an empty text in a custom resource for null, where reflect compares values by where they
# lie (go-openapi/validate, type.go); no other build does.
TEXTS_IN_WIDGETS = [value for value in VALUES if value != ""]


def paths_in(value, at=()):
    """All paths below a value, containers included."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield at + (key,)
        yield from paths_in(inner, at + (key,))


def without_nulls_in_lists(value, listed=False):
    """A merge patch that all versions take for the same: nulls in lists are items since 1.23 (evanphx/json-patch PR 143)."""
    if isinstance(value, list):
        return [without_nulls_in_lists(one, True) for one in value if one is not None]
    if isinstance(value, dict):
        return {name: without_nulls_in_lists(inner, listed) for name, inner in value.items() if inner is not None or not listed}
    return value


def without_nulls_in_new_maps(patch, present):
    """A strategic merge patch that all versions take for the same: null in a map that is not there yet is an empty text until 1.24
    (kubernetes PR 107705)."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(present, dict):
        patch, present = {name: inner for name, inner in patch.items() if inner is not None}, {}
    return {name: without_nulls_in_new_maps(inner, present.get(name)) for name, inner in patch.items()}


def fill_empty(value, whole, path):
    """Replaces the first object on the path that is empty or null by that of a whole one."""
    for name in path:
        if not value.get(name):
            value[name] = copy.deepcopy(whole[name])
        value, whole = value[name], whole[name]
        if not isinstance(value, dict):
            return


def owners_of_items(object_, name):
    """How many managers own items of a list, or fields of a map, below spec."""
    entries = object_.get("metadata", {}).get("managedFields") or []
    return sum(1 for one in entries if one["fieldsV1"].get("f:spec", {}).get("f:" + name, {}).keys() - {"."})


def is_name_of_variable(path):
    return len(path) > 2 and path[-3] == "env" and path[-1] == "name"


def taken_alike(value):
    """An object of which all versions think the same: names of variables do not begin with a digit, which is valid since 1.32 (KEP 4369)."""
    if isinstance(value, list):
        return [taken_alike(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: taken_alike(inner) for name, inner in value.items()}
    if "image" in made:
        for one in made["env"] if isinstance(made.get("env"), list) else ():
            if isinstance(one, dict) and isinstance(one.get("name"), str) and one["name"][:1].isdigit():
                one["name"] = "V" + one["name"]
    return made


def with_field_paths(value):
    """An object whose every fieldRef has its path."""
    if isinstance(value, list):
        return [with_field_paths(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: {"fieldPath": "metadata.name", **(inner or {})} if name == "fieldRef" and isinstance(inner, (dict, type(None))) else with_field_paths(inner)
            for name, inner in value.items()}


def parent_of(value, path):
    for key in path[:-1]:
        value = value[key]
    return value


def change(random, object_, values=VALUES):
    """Changes one place below spec, data and such; returns what was done. Identity and metadata are changed elsewhere."""
    places = [p for p in paths_in(object_) if p[0] not in ("apiVersion", "kind", "metadata", "status")]
    if not places:
        return None
    path = random.choice(places)
    into = parent_of(object_, path)
    action = random.choice(["set", "set", "remove", "copy", "add"])
    if action == "remove":
        del into[path[-1]]
    elif action == "copy" and isinstance(into, list) and path[-2] != "env":  # two variables of one name have owners since 1.29
        into.append(copy.deepcopy(into[path[-1]]))
    elif action == "add" and isinstance(into, dict):
        into["unknownField"] = copy.deepcopy(random.choice(values))
    else:
        into[path[-1]] = copy.deepcopy(random.choice(values))
    # What is no text can be applied as a quantity, and is read or rejected later, since 1.27 (kubernetes PR 115324).
    if isinstance(into, dict) and len(path) > 1 and path[-2] in ("limits", "requests"):
        into.update({name: str(value) for name, value in into.items() if value is not None})
    return path
