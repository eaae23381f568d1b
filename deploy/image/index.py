#!/usr/bin/env python3
"""Makes an OCI image layout with one image index of several layouts, each of which has the image of one architecture.

    index.py OUTPUT TAG LAYOUT...

Prints the index's digest. OUTPUT must not exist. The same layouts give the same digest, in whichever order they come.
"""

import hashlib
import json
import pathlib
import shutil
import sys

INDEX = "application/vnd.oci.image.index.v1+json"


def blob(layout, descriptor):
    """The content of a blob; ends the script where it is not what its digest says."""
    kind, _, digest = descriptor["digest"].partition(":")
    content = (layout / "blobs" / kind / digest).read_bytes()
    if kind != "sha256" or hashlib.sha256(content).hexdigest() != digest:
        sys.exit(f"index.py: {layout}: not what {descriptor['digest']} names")
    return content


def manifest_of(layout):
    """The descriptor of the layout's only image, with its platform."""
    manifests = json.loads((layout / "index.json").read_text())["manifests"]
    if len(manifests) != 1:
        sys.exit(f"index.py: {layout} has {len(manifests)} images, not one")
    found = manifests[0]
    config = json.loads(blob(layout, json.loads(blob(layout, found))["config"]))
    return {"mediaType": found["mediaType"], "digest": found["digest"], "size": found["size"],
            "platform": {"architecture": config["architecture"], "os": config["os"]}}, config


def write(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs" / "sha256" / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def main(output, tag, *layouts):
    output = pathlib.Path(output)
    (output / "blobs" / "sha256").mkdir(parents=True)
    found = {}
    for layout in map(pathlib.Path, layouts):
        descriptor, config = manifest_of(layout)
        architecture = descriptor["platform"]["architecture"]
        if architecture in found:
            sys.exit(f"index.py: two layouts are of {architecture}")
        found[architecture] = descriptor, config
        for path in (layout / "blobs" / "sha256").iterdir():
            shutil.copyfile(path, output / "blobs" / "sha256" / path.name)
    versions = {json.dumps([config["config"]["Labels"].get(f"org.opencontainers.image.{name}") for name in ("version", "revision")])
                for _, config in found.values()}
    if len(versions) != 1:
        sys.exit(f"index.py: the layouts are of different versions or revisions: {', '.join(sorted(versions))}")
    version, revision = json.loads(versions.pop())
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [found[name][0] for name in sorted(found)],
             "annotations": {"org.opencontainers.image.revision": revision, "org.opencontainers.image.version": version}}
    described = write(output, json.dumps(index, indent=1, sort_keys=True).encode())
    (output / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}\n')
    (output / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": INDEX, **described, "annotations": {"org.opencontainers.image.ref.name": tag}}]}, indent=1, sort_keys=True) + "\n")
    print(described["digest"])


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
