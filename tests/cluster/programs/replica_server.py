"""A replica of a TFJob that does what a test tells it over HTTP, on port 2222:

  /tfconfig          answers TF_CONFIG
  /runconfig         answers what an Estimator reads in TF_CONFIG; needs TensorFlow
  /exit?exitCode=N   answers, and exits with N
"""

import http.server
import json
import os
from typing import Dict
from urllib.parse import parse_qs, urlsplit

PORT = 2222


def run_config() -> Dict:
    """What an Estimator makes of TF_CONFIG."""
    import tensorflow as tf

    config = tf.estimator.RunConfig()
    return {"task_type": config.task_type, "task_id": config.task_id,
            "cluster_spec": config.cluster_spec.as_dict(), "is_chief": config.is_chief,
            "master": config.master, "num_worker_replicas": config.num_worker_replicas,
            "num_ps_replicas": config.num_ps_replicas}


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/tfconfig":
            self.answer(os.environ.get("TF_CONFIG", ""))
        elif asked.path == "/runconfig":
            self.answer(json.dumps(run_config()))
        elif asked.path == "/exit":
            code = int(parse_qs(asked.query)["exitCode"][0])
            self.answer(f"exits with {code}")
            os._exit(code)
        else:
            self.send_error(404)

    def answer(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", PORT), Answers).serve_forever()
