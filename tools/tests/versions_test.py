"""One version for the binary and for the packages that go with it."""

import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def found(pattern, path):
    """The one match of a pattern in a file of the tree."""
    (version,) = re.findall(pattern, (TOP / path).read_text(), flags=re.M)
    return version


class Versions(unittest.TestCase):

    def setUp(self):
        self.version = found(r'kVersion\[\] = "(.*)"', 'src/base/version.h')

    def test_each_package_has_the_binarys_version(self):
        projects = sorted(TOP.glob('elastic*/pyproject.toml'))
        self.assertEqual([project.parent.name for project in projects],
                         ['elasticai_api', 'elasticdl_api', 'elasticdl_client'])
        for project in projects:
            self.assertEqual(found(r'^version = "(.*)"', project), self.version, project)

    def test_what_a_program_reads_is_the_packages_version(self):
        for package in ('elasticai_api', 'elasticdl'):
            self.assertEqual(found(r'^__version__ = "(.*)"', f'{package}/__init__.py'),
                             self.version, package)

    def test_the_other_name_asks_for_the_same_version(self):
        self.assertEqual(found(r'"elasticai_api==(.*)"', 'elasticdl_api/pyproject.toml'),
                         self.version)


if __name__ == '__main__':
    unittest.main()
