#!/usr/bin/env bash
# Generates the datasets of the tutorials as RecordIO files: FOLDER/mnist/{train,test}, frappe, heart.
#   scripts/gen_dataset.sh FOLDER [FLAG...]     # flags of python -m elasticdl.data_gen
# Needs Python 3.8 or newer with NumPy. Nothing of the clone has to be built. ELASTICDL_PYTHON is the
# interpreter (default: python3).
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: scripts/gen_dataset.sh FOLDER [FLAG...]" >&2; exit 2; }
folder=$1
shift
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${ELASTICDL_PYTHON:-python3}
command -v "$python" >/dev/null || {
  echo "gen_dataset.sh: there is no $python in PATH; install Python 3 and NumPy, or set ELASTICDL_PYTHON" >&2
  exit 1
}
# The clone may belong to another user: it is only read.
export PYTHONPATH=$clone${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
for name in mnist frappe heart; do
  "$python" -m elasticdl.data_gen "$name" "$folder/$name" "$@"
done
