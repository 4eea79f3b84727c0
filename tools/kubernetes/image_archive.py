#!/usr/bin/env python3
"""Writes an image archive (the format of `docker save`) from layer files: no daemon, no mounts.

  image_archive.py OUT.tar --name nginx:1 --layer base.tar --layer top.tar --created 0 --cmd run
"""

import argparse
import datetime
import hashlib
import io
import json
import tarfile


def digest(path):
    with open(path, 'rb') as opened:
        return hashlib.file_digest(opened, 'sha256').hexdigest()


def add(archive, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('out')
    parser.add_argument('--name', action='append', required=True)
    parser.add_argument('--layer', action='append', required=True, help='a plain tar, lowest first')
    parser.add_argument('--created', type=int, required=True, help='seconds since 1970')
    parser.add_argument('--cmd', nargs='+', required=True)
    arguments = parser.parse_args()

    layers = {layer: digest(layer) for layer in arguments.layer}
    created = datetime.datetime.fromtimestamp(arguments.created, datetime.timezone.utc)
    created = created.strftime('%Y-%m-%dT%H:%M:%SZ')
    config = json.dumps({
        'architecture': 'amd64',
        'os': 'linux',
        'created': created,
        'config': {
            'Cmd': arguments.cmd,
            'Env': ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
        },
        'rootfs': {'type': 'layers', 'diff_ids': [f'sha256:{hex}' for hex in layers.values()]},
        # Builders count on an entry for each layer when they add theirs.
        'history': [{'created': created, 'created_by': 'image_archive.py'} for _ in layers],
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + '.json'
    with tarfile.open(arguments.out, 'w') as archive:
        add(archive, config_name, config)
        for layer, hex_digest in layers.items():
            archive.add(layer, f'{hex_digest}.tar')
        add(archive, 'manifest.json', json.dumps([{
            'Config': config_name,
            'RepoTags': arguments.name,
            'Layers': [f'{hex_digest}.tar' for hex_digest in layers.values()],
        }]).encode())


if __name__ == '__main__':
    main()
