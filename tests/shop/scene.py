# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The servers and the shop's processes, all in temporary folders of their own, and their end."""

import contextlib
import ctypes
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
DEADLINE_S = 60  # what is waited for comes in a second or two; a busy machine may take longer
LACKS = 77       # exit code: something is not installed


class Trouble(Exception):
    """The scene cannot be set, or goes on no more."""


class Lack(Trouble):
    """Something is not installed."""


def wait_until(what, condition):
    """The first result of condition() that is true. It looks again and again, for there is no event
    to wait for in another program's state."""
    end = time.monotonic() + DEADLINE_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Trouble(f"not there after {DEADLINE_S} seconds: {what}")
        time.sleep(0.02)


def die_with_parent():
    """In a child: it ends with us, also when we are killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def is_removed(folder):
    """Chromium's children go on for a moment when it is dead, and write."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


class Process:
    """A program in a session of its own, so that a Ctrl-C of the terminal is ours only."""

    def __init__(self, name, arguments, log, environment=None, reads=False):
        self.name, self.log = name, log
        with open(log, "ab") as errors:
            self.popen = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, start_new_session=True, env=environment,
                stdout=subprocess.PIPE if reads else errors, stderr=errors,
                preexec_fn=die_with_parent)
        self.pid = self.popen.pid

    def has_ended(self):
        return self.popen.poll() is not None

    def said(self):
        return self.log.read_text(errors="replace")

    def fail(self, what):
        raise Trouble(f"{self.name} {what}:\n{self.said()[-2000:]}")

    def first_line(self):
        end = time.monotonic() + DEADLINE_S
        if not select.select([self.popen.stdout], [], [], end - time.monotonic())[0]:
            self.fail("says nothing")
        line = self.popen.stdout.readline().decode()
        if not line:
            self.popen.wait()
            self.fail("did not start")
        return line.strip()

    def signal(self, number):
        if not self.has_ended():
            self.popen.send_signal(number)

    def end(self, number):
        """Its exit code. One that does not end by this signal is killed."""
        self.signal(signal.SIGCONT)
        self.signal(number)
        try:
            return self.popen.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            return self.popen.wait()


class Shop(Process):
    """One process of the shop. It is there when it has said its address."""

    def __init__(self, scene, number, settings):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("SHOP_", "PG", "HIRELOCK_", "DATABASE_URL"))}
        environment.update({"HIRELOCK_URL": scene.redis_url, "HIRELOCK_WATCHDOG_TIMEOUT": "3s",
                            "SHOP_LISTEN": "127.0.0.1:0", "SHOP_POOL": "3", **settings})
        super().__init__(f"shop {number}", [scene.program], scene.dir / f"shop{number}.log",
                         environment, reads=True)
        self.url = self.first_line()
        host, port = self.url.removeprefix("http://").rstrip("/").split(":")
        self.address = (host, int(port))
        self.is_open = True


class Scene:
    def __init__(self, program):
        self.program = program
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="hl-shop-"))
        # Apart, for it becomes somebody else's when we are root.
        self.sql_dir = pathlib.Path(tempfile.mkdtemp(prefix="hl-shop-sql-"))
        self.redis_socket = self.dir / "redis.sock"
        self.redis_url = f"unix://{self.redis_socket}"
        self.redis, self.sql_server, self.shops = None, None, []

    def start_redis(self):
        program = os.environ.get("HL_REDIS_SERVER", "redis-server")
        if not shutil.which(program) or not shutil.which("redis-cli"):
            raise Lack("redis-server or redis-cli is not here: script/bootstrap test")
        self.redis = Process("redis-server",
                             [program, "--port", "0", "--unixsocket", str(self.redis_socket),
                              "--save", "", "--appendonly", "no", "--dir", str(self.dir)],
                             self.dir / "redis.log")

        def answers():
            if self.redis.has_ended():
                self.redis.fail("did not start")
            return self.ask_redis("PING") == ["PONG"]
        wait_until("redis-server", answers)

    def start_postgres(self):
        log = self.dir / "sql.log"
        before = log.read_text().count("ready to accept connections") if log.exists() else 0
        self.sql_server = Process("postgres", ["sh", SUPPORT / "postgres", self.sql_dir], log)

        def answers():
            if self.sql_server.has_ended():
                if self.sql_server.popen.returncode == LACKS:
                    raise Lack(self.sql_server.said().strip().rpartition("\n")[2])
                self.sql_server.fail("did not start")
            return log.read_text().count("ready to accept connections") > before
        wait_until("PostgreSQL", answers)

    def start(self):
        if not shutil.which("psql"):
            raise Lack("psql is not here: script/bootstrap test")
        self.start_redis()
        self.start_postgres()

    def start_shop(self, database="postgres", **settings):
        url = f"host={self.sql_dir} user=hirelock dbname={database}"
        shop = Shop(self, len(self.shops) + 1, {"DATABASE_URL": url, **settings})
        self.shops.append(shop)
        return shop

    def ask_redis(self, *words):
        """The lines of the answer; none when nobody answers."""
        done = subprocess.run(["redis-cli", "-s", str(self.redis_socket), *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout.splitlines()

    def held_by(self, identity, article):
        return any(field.startswith(identity)
                   for field in self.ask_redis("HKEYS", f"article:{article}"))

    def ask_sql(self, statement, database="postgres"):
        """Rows of texts."""
        done = subprocess.run(
            ["psql", "-X", "-h", str(self.sql_dir), "-U", "hirelock", "-d", database, "-At", "-F", "\t",
             "-v", "ON_ERROR_STOP=1", "-c", statement],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Trouble(f"psql: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    @contextlib.contextmanager
    def locked_table(self, table, database):
        """Nobody else can read it meanwhile."""
        psql = subprocess.Popen(["psql", "-X", "-h", str(self.sql_dir), "-U", "hirelock", "-d", database],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            psql.stdin.write(f"BEGIN; LOCK TABLE {table};\n\\echo locked\n")
            psql.stdin.flush()
            while psql.stdout.readline() not in ("locked\n", ""):
                pass
            yield
        finally:
            psql.communicate()

    def kill_shops(self, *_):
        for shop in self.shops:
            shop.signal(signal.SIGKILL)

    def stop(self):
        """Shops first, since they take leave at the servers. A second Ctrl-C kills them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.kill_shops)
        for shop in self.shops:
            shop.signal(signal.SIGCONT)
            shop.signal(signal.SIGTERM)
        for shop in self.shops:
            shop.end(0)
        if self.sql_server:
            self.sql_server.end(signal.SIGQUIT)  # it ends its children, and does not tidy up
        if self.redis:
            self.redis.end(signal.SIGTERM)
        for folder in (self.dir, self.sql_dir):
            wait_until(f"{folder} is removed", lambda folder=folder: is_removed(folder))
