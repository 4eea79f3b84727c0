"""tools/services on a small tree: services that a new package enables are disabled."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SERVICES = pathlib.Path(__file__).resolve().parent.parent / 'services'


class Services(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def link(self, path):
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to('/lib/systemd/system/' + link.name)
        return link

    def run_tool(self, *arguments):
        return subprocess.run([SERVICES, *arguments], env={**os.environ, 'ROOT': str(self.root)},
                              capture_output=True, text=True, check=True).stdout

    def test_disables_only_new_services(self):
        old = self.link('etc/systemd/system/multi-user.target.wants/cron.service')
        before = self.root / 'before'
        before.write_text(self.run_tool('list'))
        new = [self.link('etc/systemd/system/multi-user.target.wants/containerd.service'),
               self.link('etc/systemd/user/sockets.target.wants/podman.socket'),
               self.link('etc/rc2.d/S01docker-registry')]
        said = self.run_tool('disable', str(before))
        self.assertTrue(old.is_symlink())
        for link in new:
            self.assertFalse(link.is_symlink(), link)
            self.assertIn(link.name, said)
        self.assertTrue((self.root / 'etc/rc2.d/K01docker-registry').is_symlink())

    def test_does_nothing_without_new_services(self):
        self.link('etc/systemd/system/multi-user.target.wants/cron.service')
        before = self.root / 'before'
        before.write_text(self.run_tool('list'))
        self.assertEqual(self.run_tool('disable', str(before)), '')


if __name__ == '__main__':
    unittest.main()
