"""tools/tfjob_acceptance: which entries of the list have tests, and what their results mean."""

import importlib.machinery
import importlib.util
import pathlib
import re
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
    return ['_'.join([each.replace('-', '_'), tool.FIXED.get(each, 'is'), 'claimed'])
            for each in ids]


ON_CLUSTER = [each for each in tool.IDS if each.startswith(('T-I', 'T-E2E', 'T-O-'))]
OF_UNITS = [each for each in tool.IDS if each not in ON_CLUSTER]
GTESTS, PYTESTS = names(OF_UNITS), [f'test_{name}' for name in names(ON_CLUSTER)]


class TfjobAcceptance(unittest.TestCase):

    def test_a_list_with_a_test_for_each_entry_is_clean(self):
        result = list_tree(GTESTS, PYTESTS)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stdout.startswith('ok'))

    def test_an_entry_without_a_test_is_missing(self):
        result = list_tree([name for name in GTESTS if not name.startswith('T_D2_')],
                           [name for name in PYTESTS if not name.startswith('test_T_O_clean_')])
        why = 'no test has this id in its name'
        self.check_missing(result, ['T-D2', 'missing', why, 'T-O-clean', 'missing', why])

    def test_what_upstream_tests_on_a_cluster_needs_a_test_there(self):
        for each in ('T-I1', 'T-E2E1', 'T-O-names'):
            name = names([each])[0]
            result = list_tree([*GTESTS, name],
                               [test for test in PYTESTS if test != f'test_{name}'])
            self.check_missing(result, [
                each, 'missing', 'no test of tests/cluster has this id in its name'])

    def test_a_difference_needs_a_test_that_names_it(self):
        for other in ('T_P5_claimed', 'T_P5_Q33_claimed', 'Q3_claimed', 'T_P5_NoQ3'):
            result = list_tree([other, *(name for name in GTESTS if not name.startswith('T_P5_')),
                                'T_P5_another'], PYTESTS)
            self.check_missing(result, [
                'T-P5', 'missing', 'no test with this id has Q3 in its name, too'])
        result = list_tree([*GTESTS, 'T_P5_another'], PYTESTS)
        self.assertEqual(result.returncode, 0, 'one of several tests is enough')

    def check_missing(self, result, words):
        """The output has these ids, verdicts and reasons, and the last line."""
        self.assertEqual(result.returncode, 1, result.stdout)
        found = [word.strip() for line in result.stdout.splitlines()[:-1]
                 for word in re.split(r'\s{2,}', line) if word.strip()]
        self.assertEqual(found, words)

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
        test = 'p::test_T_I4_Q1_x'
        self.assertEqual(self.verdict({test: ['T-I4']}, {test: ''}, 'T-I4'), ('fixed Q1', []))
        self.assertEqual(self.verdict({test: ['T-I4']}, {test: 'line 3'}, 'T-I4'),
                         ('fail', [f'{test}: line 3']))
        self.assertTrue(self.verdict({}, {}, 'T-F1')[0].startswith('not applicable: '))
        self.assertEqual(self.verdict({}, {}, 'T-SDK')[0], 'missing')
        self.assertTrue(self.verdict({'a': ['T-SDK']}, {'a': ''}, 'T-SDK')[0].startswith('pass; '))

    def verdict(self, tests, results, wanted):
        return next((verdict, reasons) for each, verdict, reasons in tool.verdicts(tests, results)
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
