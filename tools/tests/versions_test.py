"""The binary and the packages have the same version."""

import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def found(pattern, path):
    """The only match of a pattern in a file of the tree."""
    (version,) = re.findall(pattern, (TOP / path).read_text(), flags=re.M)
    return version


class Versions(unittest.TestCase):

    def setUp(self):
        self.version = found(r'kVersion\[\] = "(.*)"', 'src/base/version.h')

    def test_each_package_has_the_version_of_the_binary(self):
        projects = sorted(TOP.glob('elastic*/pyproject.toml'))
        self.assertEqual([project.parent.name for project in projects],
                         ['elasticai_api', 'elasticdl', 'elasticdl_api', 'elasticdl_client',
                          'elasticdl_preprocessing'])
        for project in projects:
            self.assertEqual(found(r'^version = "(.*)"', project), self.version, project)

    def test_the_version_attribute_is_the_version_of_the_package(self):
        for package in ('elasticai_api', 'elasticdl', 'elasticdl_preprocessing'):
            self.assertEqual(found(r'^__version__ = "(.*)"', f'{package}/__init__.py'),
                             self.version, package)

    def test_the_operator_is_deployed_with_the_image_of_this_version(self):
        path = 'elasticdl/manifests/tfjob-operator/operator/deployment.yaml'
        self.assertEqual(found('image: elasticdl/elasticdl:(.*)', path), self.version)

    def test_packages_that_require_elasticai_api_require_the_same_version(self):
        for package in ('elasticdl', 'elasticdl_api'):
            self.assertEqual(found(r'"elasticai_api==([^"]*)"', f'{package}/pyproject.toml'),
                             self.version, package)


if __name__ == '__main__':
    unittest.main()
