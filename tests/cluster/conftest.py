import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cluster import cluster, namespace  # noqa: E402, F401
