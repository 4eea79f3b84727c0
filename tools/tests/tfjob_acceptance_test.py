"""tools/tfjob_acceptance: which entries of the list have tests, and what their results mean."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent / 'tfjob_acceptance'


def load():
    loader = importlib.machinery.SourceFileLoader('tfjob_acceptance', str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


tool = load()


def list_tree(gtests, pytests):
    """The result of --list on a tree with these tests."""
    with tempfile.TemporaryDirectory() as root:
        files = {'src/reconciler/job_test.cc': ''.join(
            f"TEST(Suite, {name}) {{}}\n" for name in gtests),
            'tests/cluster/test_tfjob.py': ''.join(f'def {name}(): pass\n' for name in pytests)}
        for path, content in files.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True)
            file.write_text(content)
        return subprocess.run([sys.executable, '-B', TOOL, '--list', '--root', root],
                              capture_output=True, text=True, check=False)


def names(ids):
    return [f'{each.replace("-", "_")}_is_a_claim' for each in ids]


class TfjobAcceptance(unittest.TestCase):

    def test_a_list_with_a_test_for_each_entry_is_clean(self):
        half = len(tool.IDS) // 2
        result = list_tree(names(tool.IDS[:half]),
                           [f'test_{name}' for name in names(tool.IDS[half:])])
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stdout.startswith('ok'))

    def test_an_entry_without_a_test_is_missing(self):
        result = list_tree(names(each for each in tool.IDS if each not in ('T-I1', 'T-O-clean')),
                           [])
        self.assertEqual(result.returncode, 1)
        self.assertEqual([line.split() for line in result.stdout.splitlines()[:-1]],
                         [['T-I1', 'missing'], ['T-O-clean', 'missing']])

    def test_a_name_may_have_several_ids(self):
        self.assertEqual(tool.ids_in('test_T_I1_and_T_O_names_of_a_job'), ['T-I1', 'T-O-names'])
        self.assertEqual(tool.ids_in('T_I16_Status'), ['T-I16'])
        self.assertEqual(tool.ids_in('T_I1'), ['T-I1'])
        self.assertEqual(tool.ids_in('NOT_I1_T_I99_AT_I1'), [])

    def test_all_tests_of_an_entry_must_pass(self):
        tests = {'A.T_I2_x': ['T-I2'], 'p::test_T_I2_y': ['T-I2']}
        both = {'A.T_I2_x': '', 'p::test_T_I2_y': ''}
        self.assertEqual(self.verdict(tests, both, 'T-I2'), ('pass', []))
        self.assertEqual(self.verdict(tests, {**both, 'A.T_I2_x': 'line 3'}, 'T-I2'),
                         ('fail', ['A.T_I2_x: line 3']))
        self.assertEqual(self.verdict(tests, {'A.T_I2_x': ''}, 'T-I2'),
                         ('fail', ['p::test_T_I2_y: did not run']))

    def test_differences_are_named(self):
        self.assertEqual(self.verdict({'a': ['T-I4']}, {'a': ''}, 'T-I4'), ('fixed Q1', []))
        self.assertTrue(self.verdict({}, {}, 'T-F1')[0].startswith('not applicable: '))
        self.assertEqual(self.verdict({}, {}, 'T-SDK')[0], 'missing')
        self.assertTrue(self.verdict({'a': ['T-SDK']}, {'a': ''}, 'T-SDK')[0].startswith('pass; '))

    def verdict(self, tests, results, wanted):
        return next((verdict, failed) for each, verdict, failed in tool.verdicts(tests, results)
                    if each == wanted)

    def test_reports_of_googletest_are_read(self):
        report = '''{"testsuites": [{"name": "All/Suite", "testsuite": [
            {"name": "T_D1_x/0", "status": "RUN", "result": "COMPLETED"},
            {"name": "T_D1_x/1", "status": "RUN", "result": "COMPLETED",
             "failures": [{"failure": "a.cc:3\\nno"}]},
            {"name": "T_D2_x", "status": "RUN", "result": "SKIPPED"}]}]}'''
        self.assertEqual(tool.read_gtest(report),
                         {'Suite.T_D1_x': 'a.cc:3', 'Suite.T_D2_x': 'skipped'})

    def test_reports_of_pytest_are_read(self):
        report = '''<testsuites><testsuite>
            <testcase file="tests/a.py" name="test_T_I1_x[one]"/>
            <testcase file="tests/a.py" name="test_T_I1_x[two]"><failure message="no"/></testcase>
            <testcase file="tests/a.py" name="test_T_I2_x"/></testsuite></testsuites>'''
        self.assertEqual(tool.read_junit(report), {
            'tests/a.py::test_T_I1_x': "failure: ['no']", 'tests/a.py::test_T_I2_x': ''})


if __name__ == '__main__':
    unittest.main()
