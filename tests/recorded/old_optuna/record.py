"""Record what old Optunas write, by each of them in a venv of its own, and what each reads from it.

python tests/recorded/old_optuna/record.py POSTGRES MYSQL, two URLs with a user who may create databases, such as
postgresql://root@127.0.0.1:5432 mysql+pymysql://root@127.0.0.1:3306
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
DATABASE = "gpudiag_old_optuna"
# Schemas v2.6.0.a and v3.0.0.d. Both know SQLAlchemy 1 and numpy 1 only.
VERSIONS = ("2.10.1", "3.1.1")
BESIDE = ("sqlalchemy<1.5", "numpy<2", "pandas<3", "psycopg2-binary", "pymysql")


def record(version: str, postgres: str, mysql: str, folder: Path) -> None:
    """One version's databases as SQL, with the frame and the reports that it reads from each."""
    python, made = folder / "venv" / "bin" / "python", HERE / version
    made.mkdir(exist_ok=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    environment = os.environ | {"PIP_CONSTRAINT": "", "TZ": "Asia/Taipei"}  # no summer time
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", f"optuna=={version}", *BESIDE], env=environment, check=True
    )
    file = folder / f"{version}.db"
    urls = {
        "sqlite": f"sqlite:///{file}",
        "postgres": f"{postgres.replace('postgresql:', 'postgresql+psycopg2:')}/{DATABASE}",
        "mysql": f"{mysql}/{DATABASE}",
    }
    pg, my = server("psql", postgres), server("mysql", mysql)
    clients = (["psql", *pg, "-d", "postgres", "-qc"], [*my, "-e"])
    for client in clients:
        subprocess.run([*client, f"CREATE DATABASE {DATABASE}"], check=True)
    for name, url in urls.items():
        out = [str(made / f"{name}.csv"), str(made / f"{name}.json")]
        subprocess.run([str(python), str(HERE / "study.py"), url, *out], env=environment, check=True)
    with sqlite3.connect(file) as database:
        said = "\n".join(database.iterdump()).replace(",Inf)", ",9e999)")  # SQLite has no word for infinity
    (made / "sqlite.sql").write_text(said, encoding="utf-8")
    dump = ["pg_dump", *pg, "--no-owner", "--no-privileges", "--inserts", DATABASE]
    written(made / "postgres.sql", dump, without=("--", "SET ", "SELECT pg_catalog.set_config", "\\"))
    written(made / "mysql.sql", ["mysqldump", *my[1:], "--skip-comments", DATABASE], without=("/*",))
    for client in clients:
        subprocess.run([*client, f"DROP DATABASE {DATABASE}"], check=True)


def server(client: str, url: str) -> list[str]:
    parts = urlsplit(url)
    options = {"psql": ["-h", "-p", "-U"], "mysql": ["-h", "-P", "-u"]}[client]
    given = [word for pair in zip(options, (parts.hostname, parts.port, parts.username), strict=True) for word in pair]
    return [*(["mysql"] if client == "mysql" else []), *map(str, given)]


def written(path: Path, dump: list[str], without: tuple[str, ...]) -> None:
    """The statements alone: what a client's version and session add is left out."""
    said = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(without)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for each in VERSIONS:
            record(each, sys.argv[1], sys.argv[2], Path(place))
