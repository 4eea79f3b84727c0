"""The files in deploy/ that Prometheus and Grafana read."""

import json
import pathlib
import subprocess
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parent.parent.parent / 'deploy'


def promtool(*arguments):
    return subprocess.run(['promtool', *arguments], cwd=DEPLOY / 'prometheus', text=True,
                          capture_output=True, timeout=60)


class MetricsFiles(unittest.TestCase):

    def test_prometheus_accepts_the_rules(self):
        done = promtool('check', 'rules', '--lint=all', '--lint-fatal', 'elasticdl.rules.yml')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_alerts_fire_when_they_should(self):
        done = promtool('test', 'rules', 'elasticdl.rules.test.yml')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_case(self):
        rules = (DEPLOY / 'prometheus/elasticdl.rules.yml').read_text()
        cases = (DEPLOY / 'prometheus/elasticdl.rules.test.yml').read_text()
        alerts = [line.split()[-1] for line in rules.splitlines() if '- alert:' in line]
        self.assertGreater(len(alerts), 5)
        for alert in alerts:
            self.assertIn(f"'ALERTS{{alertname=\"{alert}\"", cases)

    def test_panels_of_a_dashboard_do_not_overlap(self):
        for path in sorted((DEPLOY / 'grafana').glob('*.json')):
            taken = set()
            for panel in json.loads(path.read_text())['panels']:
                at = panel['gridPos']
                self.assertLessEqual(at['x'] + at['w'], 24, panel['title'])
                cells = {(x, y) for x in range(at['x'], at['x'] + at['w'])
                         for y in range(at['y'], at['y'] + at['h'])}
                self.assertFalse(cells & taken, panel['title'])
                taken |= cells


if __name__ == '__main__':
    unittest.main()
