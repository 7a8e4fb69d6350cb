"""Servers for the tests that need one: a database of our own on each, dropped afterwards."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

POSTGRES = os.environ.get("GPUDIAG_POSTGRES", "postgresql+psycopg://root@127.0.0.1:5432/postgres")
MYSQL = os.environ.get("GPUDIAG_MYSQL", "mysql+pymysql://root@127.0.0.1:3306/test")


def absent(what: str, error: Exception) -> None:
    """Skip where there is no server, fail where there must be one."""
    if os.environ.get("GPUDIAG_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{what} is required but does not answer: {error}")
    pytest.skip(f"no {what} on this machine")


def sql_database(kind: str, admin: str, drop: str) -> Iterator[str]:
    """The URL of a fresh database beside the one that ``admin`` names."""
    import sqlalchemy

    name = f"gpudiag_{uuid.uuid4().hex[:12]}"
    engine = sqlalchemy.create_engine(admin, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3})
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        absent(kind, error)
    try:
        yield f"{admin.rpartition('/')[0]}/{name}"
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(drop.format(name))
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    yield from sql_database("PostgreSQL", POSTGRES, "DROP DATABASE {} WITH (FORCE)")


@pytest.fixture(scope="session")
def mysql_url() -> Iterator[str]:
    yield from sql_database("MySQL", MYSQL, "DROP DATABASE {}")


@pytest.fixture
def fresh_server_urls() -> Iterator[tuple[str, str]]:
    """PostgreSQL and MySQL, each with a database that no Optuna has touched."""
    for postgres in sql_database("PostgreSQL", POSTGRES, "DROP DATABASE {} WITH (FORCE)"):
        for mysql in sql_database("MySQL", MYSQL, "DROP DATABASE {}"):
            yield postgres, mysql


@pytest.fixture
def redis_prefix() -> Iterator[tuple[str, str]]:
    """A server's URL and a prefix that nobody else uses."""
    import redis

    url = os.environ.get("GPUDIAG_REDIS", "redis://127.0.0.1:6379")
    prefix = f"gpudiag_{uuid.uuid4().hex[:12]}"
    server = redis.Redis.from_url(url, socket_connect_timeout=3)
    try:
        server.ping()
    except redis.RedisError as error:
        absent("Redis", error)
    yield url, prefix
    keys = list(server.scan_iter(match=f"{prefix}*"))
    if keys:
        server.delete(*keys)
    server.close()
