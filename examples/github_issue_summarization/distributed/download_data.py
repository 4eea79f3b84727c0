"""Downloads the dataset: a csv file, or a zip archive of one.

    python download_data.py URL FOLDER

The result is FOLDER/github_issues.csv. It appears when it is complete, so other pods wait for it.
The server may start later than this program: failed downloads are repeated for ten minutes.
"""

import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import zipfile

FILE = "github_issues.csv"
SECONDS = 600  # to wait for the server


def download(url: str, path: str) -> None:
    with urllib.request.urlopen(url, timeout=60) as source, open(path, "wb") as out:
        shutil.copyfileobj(source, out)
        expected = source.headers.get("Content-Length")
    size = os.path.getsize(path)
    if expected is not None and size != int(expected):
        raise OSError(f"the connection ended after {size} of {expected} bytes")


def download_until(url: str, path: str, deadline: float) -> None:
    """Repeats the download until it succeeds."""
    while True:
        try:
            return download(url, path)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                sys.exit(f"{url}: the server answers {error.code} {error.reason}; correct DATA_URL")
            problem: Exception = error
        except OSError as error:
            problem = error
        if time.monotonic() > deadline:
            sys.exit(f"cannot download {url} within {SECONDS} s: {problem}; check that its server "
                     "runs, or correct DATA_URL")
        print(f"cannot download {url} yet: {problem}", flush=True)
        time.sleep(2)


def unpack(archive: str, path: str) -> None:
    """Writes the only csv file of the archive to `path`."""
    with zipfile.ZipFile(archive) as opened:
        tables = [name for name in opened.namelist() if name.endswith(".csv")]
        if len(tables) != 1:
            sys.exit(f"the archive has {len(tables)} csv files instead of one: {tables}; give "
                     "DATA_URL an archive with one")
        with opened.open(tables[0]) as source, open(path, "wb") as out:
            shutil.copyfileobj(source, out)


def main(url: str, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    loaded, unpacked = os.path.join(folder, "download"), os.path.join(folder, "unpacked")
    download_until(url, loaded, time.monotonic() + SECONDS)
    if zipfile.is_zipfile(loaded):
        unpack(loaded, unpacked)
        os.remove(loaded)
    else:
        unpacked = loaded
    path = os.path.join(folder, FILE)
    os.replace(unpacked, path)
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: download_data.py URL FOLDER")
    main(*sys.argv[1:])
