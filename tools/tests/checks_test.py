"""The checks of tools/lint, on small trees that break one rule each."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent

LAYERS = '''
base:
job: base
rpc: base job
master: base job rpc
master/local: base master
cli: base
apps: *
test cli: job
generated: rpc/* *_service.cc
'''


def run(tool, files, layers=LAYERS):
    """The result of `tool` on a tree that consists of {path: content}."""
    with tempfile.TemporaryDirectory() as root:
        for path, content in {'tools/layers.txt': layers, **files}.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return subprocess.run([sys.executable, TOOLS / tool, '--root', root],
                              capture_output=True, text=True, check=False)


class CheckLayers(unittest.TestCase):

    def assert_clean(self, files):
        result = run('check_layers', files)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.startswith('ok'))

    def assert_offence(self, files, *words):
        result = run('check_layers', files)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout)

    def test_an_include_downwards_is_clean(self):
        self.assert_clean({'src/base/status.h': '',
                           'src/job/role.h': '#include <string>\n#include "base/status.h"\n'})

    def test_an_include_upwards_is_reported_with_its_line_and_a_fix(self):
        self.assert_offence({'src/master/ledger.h': '',
                             'src/job/role.cc': '#pragma once\n#include "master/ledger.h"\n'},
                            'src/job/role.cc:2:', 'job may not include "master/ledger.h"',
                            'job may include: base', 'to fix:')

    def test_a_module_that_is_not_in_the_table_may_not_be_included(self):
        self.assert_offence({'src/job/role.h': '', 'src/cli/train.cc': '#include "job/role.h"\n'},
                            'src/cli/train.cc:1:')

    def test_a_test_may_include_what_its_test_line_allows(self):
        tree = {'src/job/role.h': '', 'src/cli/train_test.cc': '#include "job/role.h"\n'}
        self.assert_clean(tree)

    def test_a_folder_with_its_own_line_is_not_its_parent(self):
        self.assert_offence({'src/master/local/agent.h': '',
                             'src/master/master.cc': '#include "master/local/agent.h"\n'},
                            'src/master/master.cc:1:')

    def test_only_tests_include_testing_folders(self):
        files = {'src/base/testing/fake.h': '',
                 'src/job/a_test.cc': '#include "base/testing/fake.h"\n'}
        self.assert_clean(files)
        files['src/job/a.cc'] = '#include "base/testing/fake.h"\n'
        self.assert_offence(files, 'src/job/a.cc:1:', 'for tests only')

    def test_only_services_include_generated_headers(self):
        include = '#include "elasticdl/v1/master.pb.h"\n'
        self.assert_clean({'src/rpc/convert.cc': include, 'src/master/job_service.cc': include,
                           'src/master/job_service_test.cc': include, 'apps/x/main.cc': include})
        self.assert_offence({'src/master/ledger.cc': include}, 'src/master/ledger.cc:1:',
                            'generated header')

    def test_generated_headers_in_angle_brackets_are_seen(self):
        self.assert_offence({'src/master/ledger.h': '#include <compat/api.grpc.pb.h>\n'},
                            'src/master/ledger.h:1:')

    def test_a_folder_without_a_line_is_an_offence(self):
        self.assert_offence({'src/base/status.h': '',
                             'src/misc/a.cc': '#include "base/status.h"\n'},
                            'misc has no line')

    def test_an_include_relative_to_the_file_is_an_offence(self):
        self.assert_offence({'src/job/role.h': '', 'src/job/role.cc': '#include "role.h"\n'},
                            'src/job/role.cc:1:', '"job/role.h"')

    def test_a_cycle_in_the_table_is_an_error(self):
        result = run('check_layers', {}, 'a: b\nb: a\n')
        self.assertEqual(result.returncode, 2)
        self.assertIn('a cycle: a -> b -> a', result.stderr)

    def test_an_unknown_name_in_the_table_is_an_error(self):
        result = run('check_layers', {}, 'a: nowhere\n')
        self.assertEqual(result.returncode, 2)
        self.assertIn('nowhere', result.stderr)


class CheckTests(unittest.TestCase):

    def test_a_listed_test_is_clean(self):
        result = run('check_tests', {
            'src/a/CMakeLists.txt': 'edl_test(a SOURCES x_test.cc sub/y_test.cc)\n',
            'src/a/x_test.cc': '',
            'src/a/sub/y_test.cc': '',
        })
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_test_that_only_a_comment_lists_is_reported(self):
        result = run('check_tests', {'src/a/CMakeLists.txt': '# x_test.cc\n',
                                     'src/a/x_test.cc': ''})
        self.assertEqual(result.returncode, 1)
        self.assertIn('src/a/x_test.cc', result.stdout)

    def test_a_longer_name_does_not_list_a_shorter_one(self):
        result = run('check_tests', {
            'src/a/CMakeLists.txt': 'edl_test(a SOURCES big_x_test.cc)\n',
            'src/a/x_test.cc': '',
            'src/a/big_x_test.cc': '',
        })
        self.assertEqual(result.returncode, 1)

    PAGE = '| fault | test |\n|---|---|\n| T:1 | {} |\n'
    TREE = {'src/a/CMakeLists.txt': 'edl_test(a SOURCES x_test.cc)\n',
            'src/a/x_test.cc': 'TEST(Lease, IsReturned) {}\nTEST(Lease, IsLost) {}\n',
            'tests/e2e/test_jobs.py': 'def test_a_job_ends():\n'}

    def check_page(self, cell):
        return run('check_tests', {**self.TREE, 'docs/robustness.md': self.PAGE.format(cell)})

    def test_tests_of_the_page_that_exist_are_clean(self):
        for cell in ('`x_test.cc: Lease.IsReturned, IsLost`, `tests/e2e/test_jobs.py: '
                     'test_a_job_...`, `make bench-ps`', '`src/a/x_test.cc: Lease.*`',
                     '`x_test.cc`, `Lease.IsLost`', 'not fixed: needs `returned`'):
            result = self.check_page(cell)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_tests_of_the_page_that_are_missing_are_reported(self):
        for cell, name in (('`x_test.cc: Lease.IsGone`', 'Lease.IsGone'),
                           ('`x_test.cc: IsLost`, `IsGone`', 'IsGone'),
                           ('`y_test.cc: IsLost`', 'y_test.cc'),
                           ('`x_test.cc: Session.*`', 'Session.*'),
                           ('`test_jobs.py: test_no_job_...`', 'test_no_job_...')):
            result = self.check_page(cell)
            self.assertEqual(result.returncode, 1, cell)
            self.assertIn(f'docs/robustness.md:3: there is no test {name}', result.stdout)


class CheckFlags(unittest.TestCase):
    """On copies of this tree, each without the code that reads one flag."""

    READERS = (
        # flag, file, text that reads the flag, its replacement
        ('task_fault_tolerance', 'src/master/core.cc', 'task_fault_tolerance', 'no_such_field'),
        ('ps_is_critical', 'src/master/replicas/replica_keeper.cc', 'spec_.ps_is_critical', 'true'),
        ('launch_worker_after_ps_running', 'src/master/replicas/replica_keeper.cc',
         'spec_.launch_worker_after_ps_running', 'false'),
        ('need_task_manager', 'src/master/context.cc', 'spec.need_task_manager', 'true'),
        ('num_epochs', 'src/master/core.cc', 'spec_.num_epochs', '1'),
        ('relaunch_timeout_worker', 'src/master/core.cc', 'spec_.relaunch_timeout_worker', 'true'),
        ('detach', 'src/job/job_spec.cc', 'spec.detach = flags.Bool("detach");', ''),
        ('compat_api', 'src/master/service/compat_admission.cc', 'job_.compat_api', 'true'),
        ('feed', 'src/job/model_spec.cc', 'flags.String("feed")', '""'),
        ('wait', 'src/cli/train_on_cluster.cc', 'flags.Bool("wait")', 'false'),
        ('worker_resource_limit', 'src/job/job_spec.cc', '"_resource_limit"', '""'),
        ('ps_image', 'src/backend/cluster_options.cc', 'given_or("ps_image")', 'image'),
    )

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ('src', 'apps'):
            shutil.copytree(TOOLS.parent / name, self.root / name)
        (self.root / 'docs').mkdir()
        shutil.copy(TOOLS.parent / 'docs/flags.md', self.root / 'docs/flags.md')

    def check(self):
        return subprocess.run([sys.executable, TOOLS / 'check_flags', '--root', self.root],
                              capture_output=True, text=True, check=False)

    def replaced(self, path, old, new):
        """The result of the check on a tree in which `new` replaces `old`."""
        file = self.root / path
        before = file.read_text()
        # Otherwise the tree would not change, and the test would prove nothing.
        self.assertIn(old, before, path)
        file.write_text(before.replace(old, new))
        result = self.check()
        file.write_text(before)
        return result

    def test_this_tree_is_clean_and_a_flag_without_a_reader_is_reported(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for flag, path, reader, instead in self.READERS:
            with self.subTest(flag):
                result = self.replaced(path, reader, instead)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f'--{flag} is not read by any code', result.stdout)

    def test_a_field_without_a_reader_is_reported(self):
        result = self.replaced('src/job/job_spec.h', 'bool detach = false;',
                               'bool detach = false;\n  bool forgotten = false;')
        self.assertEqual(result.returncode, 1)
        self.assertIn('JobSpec::forgotten', result.stdout)

    def test_a_flag_with_an_effect_that_is_documented_without_one_is_reported(self):
        result = self.replaced('docs/flags.md', '| `--max_step` | `0` | ',
                               '| `--max_step` | `0` | *[model_def]* ')
        self.assertEqual(result.returncode, 1)
        self.assertIn('--max_step sets a field', result.stdout)
        result = self.replaced('src/cli/no_effect.cc', '"enable_automate_memory", ', '')
        self.assertIn('--enable_automate_memory is not read by any code', result.stdout)


class CheckWords(unittest.TestCase):

    WORDS = (TOOLS / 'retired_words.txt').read_text()

    def check(self, files):
        return run('check_words', {'tools/retired_words.txt': self.WORDS, **files})

    def assert_offence(self, path, content, *words):
        result = self.check({path: content})
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout)

    def test_plain_words_are_clean(self):
        result = self.check({'src/master/core.cc': '// The indoor heartbeat of a cardboard box.\n',
                             'requirements.txt': 'TensorBoard\n'})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_retired_word_in_a_comment(self):
        self.assert_offence('src/master/core.h', 'int a;\n// The door of our clients.\n',
                            'src/master/core.h:2: "door"', 'service')

    def test_a_retired_word_in_a_message(self):
        self.assert_offence('src/cli/stop.cc', 'Fail("shard 3 was set aside");\n', 'quarantined')

    def test_a_retired_word_in_a_flag(self):
        self.assert_offence('src/job/train_flags.cc', '{.name = "old_door"},\n', '--compat_api')

    def test_a_retired_word_in_a_page(self):
        self.assert_offence('docs/flags.md', '# Flags\n\nThe patience of a call.\n',
                            'docs/flags.md:3: "patience"', 'timeout')

    def test_a_retired_word_in_the_name_of_a_file(self):
        self.assert_offence('src/master/server_hands.h', '', 'the name has', 'controller')

    def test_a_comment_that_starts_with_of(self):
        self.assert_offence('src/ps/round.h', '  // Of the buckets.\n', 'starts with its subject')

    def test_each_line_of_the_list_finds_something(self):
        planted = ['door', 'Hands', 'Teller', 'SyncBoard', 'World', 'Beat', 'Exchange', 'max_ahead',
                   'patience', 'complaint', 'set aside', 'unborn', 'Wish', 'guest', 'Surroundings',
                   'Badness', 'newcomer', 'mend', 'name_space', 'hurry', '// Of a row', 'way out:',
                   'not_in_original would', 'furniture', 'brought about',
                   'took it for dead', 'in its hands']
        lines = [line for line in self.WORDS.splitlines()
                 if ' => ' in line and not line.startswith('#')]
        self.assertEqual(len(planted), len(lines), 'plant a word for each line of the list')
        for word, line in zip(planted, lines):
            self.assert_offence('docs/page.md', f'{word}\n', line.partition(' => ')[2])

    def test_a_list_that_cannot_be_read(self):
        for wrong in ('door\n', '[ => bracket\n'):
            result = run('check_words', {'tools/retired_words.txt': wrong})
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn('tools/retired_words.txt:1', result.stderr)



class CheckRepeats(unittest.TestCase):

    BLOCK = [f'  value = Compute(value, {number});' for number in range(6)]

    def assert_found(self, files, *words):
        result = run('check_repeats', files)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout)

    def assert_clean(self, files):
        result = run('check_repeats', files)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.startswith('ok'))

    def file(self, *lines):
        return '\n'.join(lines) + '\n'

    def test_six_lines_in_two_files_are_reported_with_both_places(self):
        self.assert_found({'src/a/a.cc': self.file('int A() {', *self.BLOCK, '}'),
                           'src/b/b.cc': self.file('', 'int B() {', *self.BLOCK, '}')},
                          'src/b/b.cc:3: lines 3 to 8 are also at src/a/a.cc:2 to 7', 'to fix:')

    def test_six_lines_twice_in_one_file_are_found(self):
        self.assert_found({'src/a/a.cc': self.file(*self.BLOCK, 'Other();', *self.BLOCK)},
                          'src/a/a.cc:8:')

    def test_spacing_comments_and_punctuation_do_not_hide_a_block(self):
        hidden = [line for code in self.BLOCK for line in (f'    {code}', '', '// why', '}')]
        self.assert_found({'src/a/a.cc': self.file(*self.BLOCK),
                           'elasticdl/native/b.cc': self.file(*hidden)}, 'src/a/a.cc:1:')

    def test_python_counts_too(self):
        block = [f'    value = compute(value, {number})' for number in range(6)]
        self.assert_found({'elasticai_api/a.py': self.file('def a():', *block),
                           'elasticdl/b.py': self.file('def b():', *block)}, 'elasticdl/b.py:2:')

    def test_five_lines_are_clean(self):
        self.assert_clean({'src/a/a.cc': self.file(*self.BLOCK[:5]),
                           'src/b/b.cc': self.file(*self.BLOCK[:5])})

    def test_tests_includes_and_tables_are_clean(self):
        block = self.file(*self.BLOCK)
        self.assert_clean({'src/a/a.cc': block, 'src/a/a_test.cc': block,
                           'src/a/testing/fake.cc': block, 'tests/b.cc': block,
                           'elasticdl/python/tests/a_test.py': block})
        includes = self.file(*(f'#include "base/{number}.h"' for number in range(9)))
        table = self.file(*(f'    .field{number} = "value",' for number in range(9)))
        imports = self.file('from a import (', *(f'    name{n},' for n in range(9)), ')')
        self.assert_clean({'src/a/a.h': includes + table, 'src/b/b.h': includes + table,
                           'elasticdl/a.py': imports, 'elasticdl/b.py': imports})


if __name__ == '__main__':
    unittest.main()
