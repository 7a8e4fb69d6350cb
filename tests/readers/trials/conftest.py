"""Servers for the tests that need one."""

from databases import fresh_server_urls, mysql_url, postgres_url, redis_prefix

__all__ = ["fresh_server_urls", "mysql_url", "postgres_url", "redis_prefix"]
