"""tools/lint --changed on small repositories."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent

NINJA = '''
rule compile
  command = clang++-14 -std=c++20 -I ../src -MD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
'''
CLEAN = 'int Half(int value) { return value / 2; }\n'
# readability-identifier-naming rejects the name of the parameter.
WRONG = 'inline int Half(int Value) { return Value / 2; }\n'


class LintChanged(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, 'tree')
        self.build = self.root / 'build'
        self.environment = {**os.environ, 'ELASTICDL_CACHE': f'{folder.name}/cache',
                            'PATH': f'{folder.name}/programs:{os.environ["PATH"]}'}
        self.programs = pathlib.Path(folder.name, 'programs')
        self.write({'.gitignore': 'build\n'})
        for name in ('tools/lint', '.clang-tidy'):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(TOOLS.parent / name, self.root / name)
        self.git('init', '--quiet', '--initial-branch=main')

    def git(self, *arguments):
        subprocess.run(['git', '-c', 'user.name=test', '-c', 'user.email=test@localhost',
                        *arguments], cwd=self.root, check=True, capture_output=True)

    def write(self, files):
        for name, content in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    def commit(self, files):
        self.write(files)
        self.git('add', '.')
        self.git('commit', '--quiet', '--message=change')

    def compile(self):
        """Builds every source file, as CMake and ninja would."""
        sources = sorted(self.root.glob('src/**/*.cc'))
        self.build.mkdir(exist_ok=True)
        rules = [f'build {file.stem}.o: compile ../{file.relative_to(self.root)}\n'
                 for file in sources]
        (self.build / 'build.ninja').write_text(NINJA + ''.join(rules))
        (self.build / 'compile_commands.json').write_text(json.dumps([
            {'directory': str(self.build), 'file': str(file),
             'command': f'clang++-14 -std=c++20 -I{self.root}/src -o {file.stem}.o -c {file}'}
            for file in sources]))
        subprocess.run(['ninja', '-C', self.build], check=True, capture_output=True)

    def lint(self):
        self.compile()
        return subprocess.run([sys.executable, self.root / 'tools/lint', '--changed', '--build',
                               self.build], env=self.environment, capture_output=True, text=True,
                              check=False)

    def assert_passes(self, *words):
        result = self.lint()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout)

    def assert_fails(self, *words):
        result = self.lint()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout)
        return result.stdout

    def test_a_finding_in_a_changed_header_is_reported(self):
        self.commit({'src/a/x.h': '', 'src/a/x.cc': '#include "a/x.h"\n'})
        self.write({'src/a/x.h': WRONG})
        self.assert_fails('src/a/x.h:1:', "invalid case style for parameter 'Value'")

    def test_findings_in_unchanged_files_are_not_reported(self):
        self.commit({'src/a/old.cc': WRONG, 'src/a/new.cc': ''})
        self.write({'src/a/new.cc': WRONG})
        self.assertNotIn('old.cc', self.assert_fails('src/a/new.cc:1:'))

    def test_a_new_file_that_is_not_committed_is_checked(self):
        self.commit({'src/a/old.cc': ''})
        self.write({'src/a/new.cc': WRONG})
        self.assert_fails('src/a/new.cc:1:')

    def test_changes_are_counted_from_the_merge_base_with_origin_main(self):
        self.commit({})
        self.commit({'src/a/old.cc': WRONG})
        self.git('update-ref', 'refs/remotes/origin/main', 'HEAD')
        self.commit({'src/a/new.cc': CLEAN})
        self.commit({'src/a/newer.cc': CLEAN})
        self.assert_passes('need 2 translation units')

    def test_a_changed_file_that_is_not_part_of_the_build_is_counted(self):
        self.commit({'src/a/x.cc': ''})
        self.write({'src/a/unused.h': WRONG})
        self.assert_passes('1 changed files are not part of this build, such as src/a/unused.h')

    def test_a_unit_that_has_passed_is_not_checked_again(self):
        self.commit({'src/a/x.cc': ''})
        self.write({'src/a/x.cc': CLEAN})
        self.assert_passes('need 1 translation units, 0 of them passed before')
        self.assert_passes('need 1 translation units, 1 of them passed before')

    def test_only_twelve_units_are_checked_and_the_rest_is_counted(self):
        # A stand-in for clang-tidy that records what it is called for.
        self.programs.mkdir()
        program = self.programs / 'clang-tidy-14'
        program.write_text(f'#!/bin/sh\necho "$2" >>{self.programs}/calls\n')
        program.chmod(0o755)
        self.commit({})
        self.write({f'src/a/x{number}.cc': '' for number in range(15)})
        self.assert_passes('need 15 translation units', '3 units are left out')
        self.assertEqual(len((self.programs / 'calls').read_text().splitlines()), 12)
        # The next run takes up those that were left out.
        self.assert_passes('12 of them passed before')
        self.assertEqual(len((self.programs / 'calls').read_text().splitlines()), 15)


if __name__ == '__main__':
    unittest.main()
