# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""What buyers, operators and servers do to a shop."""

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import threading

import buyers
import relay
import sales
import scene
import verdicts
import web

JSON = {"Content-Type": "application/json"}
ORDER = {"order": "a", "article": "lamp", "quantity": 1}
ODD = ['<img src="x" onerror="document.title=1">', "Stühle ☃"]


def open_shop(stage, database, **settings):
    if not stage.ask_sql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
        stage.ask_sql(f"CREATE DATABASE {database}")
    return stage.start_shop(database, **settings)


def open_relayed(stage, database, lose=None, **settings):
    """A shop, and what is between it and PostgreSQL."""
    between = relay.Relay(stage.sql_dir / ".s.PGSQL.5432")
    between.lose = lose
    url = f"host=127.0.0.1 port={between.port} user=hirelock dbname={database}"
    return open_shop(stage, database, DATABASE_URL=url, **settings), between


def is_ready(shop):
    try:
        return web.ask(shop.address, "GET", "/ready")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def raw(shop, data):
    """The status of the answer to these bytes, or None: the connection was closed."""
    with socket.create_connection(shop.address, 60) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
        try:
            line = connection.makefile("rb").readline()
        except OSError:
            return None
        return int(line.split()[1]) if line else None


def bad_requests(stage, _chromium, judge):
    """Bad requests get an answer that says why, and change nothing"""
    shop = open_shop(stage, "attacks", SHOP_ARTICLES="lamp:10")

    def refused(body, status, headers=JSON, method="POST", path="/buy"):
        found, answer = web.ask(shop.address, method, path, body, headers)
        judge.same(found, status, f"{method} {path} {body!r:.60}")
        judge.check(found != status or json.loads(answer)["error"], f"says nothing: {answer}")

    for body in ("", "{", "[]", "null", "1", '"x"', '{"order": "a"', "{} {}", "\0", "\xff\xfe",
                 "[" * 2000, '{"order": {"a": {"b": {"c": {"d": 1}}}}}'):
        refused(body.encode("latin-1"), 400)
    for change in ({"order": ""}, {"order": "a" * 65}, {"order": "a b"}, {"order": "a\0b"},
                   {"order": "ä"}, {"order": 7}, {"order": None}, {"quantity": 0},
                   {"quantity": -1}, {"quantity": 1001}, {"quantity": 10 ** 30}, {"quantity": 1.5},
                   {"quantity": "1"}, {"quantity": True}):
        refused(json.dumps({**ORDER, **change}), 400)
    for change in ({"article": "LAMP"}, {"article": ""}, {"article": "lamp\0"}, {"article": 1},
                   {"article": "'; DROP TABLE orders; --"}):
        refused(json.dumps({**ORDER, **change}), 404)
    refused(json.dumps(ORDER), 415, {})
    refused(json.dumps(ORDER), 415, {"Content-Type": "text/plain"})
    refused(None, 405, {}, "GET")
    refused("{}", 405, JSON, "POST", "/metrics")
    refused(None, 404, {}, "GET", "/../etc/passwd")
    judge.same(raw(shop, b"POST /buy HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                   b"Content-Length: 100000000\r\n\r\n{"), 413, "a body of 100 MB")
    judge.same(raw(shop, b"POST /buy HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                   + b"1000\r\n" + b"x" * 4096 + b"\r\n1000\r\n" + b"x" * 4096 + b"\r\n"), 413,
               "a body that is too long in pieces")
    judge.check(raw(shop, b"GET / HTTP/1.1\r\nA: " + b"x" * 100000 + b"\r\n\r\n") in (400, 413, None),
                "headers without end")
    judge.check(raw(shop, b"\x16\x03\x01\x00\xff\r\n\r\n") in (400, None), "what is not HTTP")
    judge.same(stage.ask_sql("SELECT count(*) FROM orders", "attacks"), [["0"]], "orders made")
    judge.same(web.buy(shop.address, ORDER)[0], 200, "a good one after that")
    judge.same(web.buy(shop.address, {**ORDER, "quantity": 2})[0], 422, "its id for another order")


def bad_settings(stage, _chromium, judge):
    """A bad setting ends the program with a text that says what to write"""
    good = {"HIRELOCK_URL": stage.redis_url, "SHOP_LISTEN": "127.0.0.1:0",
            "DATABASE_URL": f"host={stage.sql_dir} user=hirelock dbname=postgres"}
    cases = [
        ({"SHOP_WORKERS": "0"}, 2, "a number from 1 to 256"),
        ({"SHOP_WORKERS": "8 "}, 2, "SHOP_WORKERS is '8 '"),
        ({"SHOP_QUEUE": "99999999999999999999"}, 2, "SHOP_QUEUE"),
        ({"SHOP_LISTEN": "8080"}, 2, "ADDRESS:PORT"),
        ({"SHOP_LISTEN": "127.0.0.1:"}, 2, "ADDRESS:PORT"),
        ({"SHOP_LISTEN": "shop.example:80"}, 2, "ADDRESS:PORT"),
        ({"SHOP_LISTEN": "192.0.2.1:80"}, 1, "SHOP_LISTEN: "),
        ({"SHOP_LOCK": "yes"}, 2, "on or off"),
        ({"SHOP_ARTICLES": ""}, 2, "a list of articles"),
        ({"SHOP_ARTICLES": "lamp"}, 2, "NAME:STOCK"),
        ({"SHOP_ARTICLES": "lamp:-1"}, 2, "NAME:STOCK"),
        ({"SHOP_ARTICLES": "lamp:1,lamp:2"}, 2, "there once"),
        ({"SHOP_ARTICLES": "a" * 65 + ":1"}, 2, "1 to 64 bytes"),
        ({"SHOP_ARTICLES": ",".join(f"{i}:1" for i in range(33))}, 2, "at most 32"),
        ({"SHOP_ARTICLES": "a}b{:1"}, 1, "SHOP_ARTICLES: "),
        ({"SHOP_WORKER": "3"}, 2, "SHOP_WORKER is no variable"),
        ({"SHOP_CONNECTIONS": "100000"}, None, None if has_descriptors(100150) else "ulimit"),
        ({"HIRELOCK_URL": None}, 2, "HIRELOCK_URL is not set"),
        ({"HIRELOCK_URL": "http://127.0.0.1"}, 1, "begins with none of"),
        ({"HIRELOCK_URL": f"unix://{stage.dir}/nobody.sock"}, 1, "nobody.sock"),
        ({"HIRELOCK_WATCHDOG_TIMEOUT": "soon"}, 1, "HIRELOCK_WATCHDOG_TIMEOUT"),
        ({"DATABASE_URL": "postgres://[x"}, 2, "DATABASE_URL: "),
        ({"DATABASE_URL": f"host={stage.dir}/nobody"}, 1, "PostgreSQL: "),
    ]
    for change, wanted, word in cases:
        environment = {"PATH": os.environ["PATH"], **good, **change}
        environment = {name: value for name, value in environment.items() if value is not None}
        if word is None:
            continue
        done = subprocess.run([stage.program], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=scene.DEADLINE_S)
        judge.check(word in done.stderr and done.returncode == (wanted or 1) and not done.stdout,
                    f"{change}: {done.returncode}: {done.stdout}{done.stderr}")
    said = subprocess.run([stage.program, "--help"], capture_output=True, text=True).stdout
    judge.check(max(map(len, said.splitlines())) <= 80 and len(said.splitlines()) <= 24,
                "the help fits a terminal")


def has_descriptors(count):
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= count


def buyers_who_leave(stage, _chromium, judge):
    """A buyer who leaves in the middle has an order, once, and learns of it when asking again"""
    shop = open_shop(stage, "leaving", SHOP_ARTICLES="lamp:100", SHOP_DECIDE_MS="20")
    orders = [{**ORDER, "order": f"left-{i}"} for i in range(50)]
    for order in orders:
        with socket.create_connection(shop.address) as connection:
            connection.sendall(web.buy_bytes(order))
        with socket.create_connection(shop.address) as connection:
            connection.sendall(web.buy_bytes(order)[:-7])  # half a request is none

    scene.wait_until("all orders", lambda: stage.ask_sql("SELECT count(*) FROM orders", "leaving")
                     == [["50"]])
    judge.same([web.buy(shop.address, order)[0] for order in orders], [200] * 50, "asked again")
    judge.same(stage.ask_sql("SELECT stock FROM article", "leaving"), [["50"]], "stock")
    judge.same(verdicts.metric(shop, "shop_orders_open"), 0, "orders open")


def slow_pages(stage, chromium, judge):
    """A page that does not read gets no more than one report; odd names are text"""
    names = ODD + [f"{i:064}" for i in range(30)]
    shop = open_shop(stage, "slow", SHOP_ARTICLES=",".join(f"{name}:1" for name in names))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(shop.address)
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        scene.wait_until("events that are dropped",
                         lambda: verdicts.metric(shop, "shop_events_dropped_total") > 3)
        with contextlib.suppress(OSError):
            connection.settimeout(0.2)
            connection.sendall(b"x" * 10000000)  # it is not read
        judge.same(verdicts.metric(shop, "shop_pages"), 1, "pages that listen")
    scene.wait_until("the page is forgotten", lambda: verdicts.metric(shop, "shop_pages") == 0)
    sales.open_page(chromium, shop)
    shown = chromium.ask("[...document.querySelectorAll('#articles th')].map(e => e.textContent)")
    judge.same(sorted(shown), sorted(names), "names on the page")
    judge.same(chromium.ask("document.images.length + document.title"), "0hirelock shop", "images")
    streams = [socket.create_connection(shop.address) for _ in range(110)]
    for stream in streams:
        stream.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    scene.wait_until("pages", lambda: verdicts.metric(shop, "shop_pages") == 100)
    for stream in streams:
        stream.close()


def peak_kib(shop):
    """The most memory that it ever had."""
    with open(f"/proc/{shop.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def send_unread(shop, connection, requests, most):
    """Sends until the shop takes no more, though its loop turns. Returns the bytes."""
    sent, turns = 0, 0
    while turns < 50 and sent < most:
        turns += 1
        with contextlib.suppress(BlockingIOError):
            while sent < most:
                sent += connection.send(requests[sent % len(requests):])
                turns = 0
        web.ask(shop.address, "GET", "/health")
    return sent


def unread_answers(stage, _chromium, judge):
    """A client that asks and asks, and reads no answer, takes no more than its share of memory"""
    shop = open_shop(stage, "unread", SHOP_ARTICLES="lamp:1")
    scene.wait_until("ready", lambda: is_ready(shop))
    before = peak_kib(shop)
    with socket.create_connection(shop.address) as connection:
        connection.setblocking(False)
        requests = b"GET /state HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
        sent = send_unread(shop, connection, requests, 64 << 20)
        more = peak_kib(shop) - before
        judge.check(more < 20000, f"{more} KiB more for {sent} bytes")
    judge.same(web.buy(shop.address, ORDER)[0], 200, "bought after that")


def restart_under_load(stage, judge, name, restart):
    """The servers' turn; every buyer gets an answer in the end, and it is in the table."""
    shop = open_shop(stage, name, SHOP_ARTICLES="lamp:60", SHOP_DECIDE_MS="20")
    scene.wait_until("ready", lambda: is_ready(shop))
    crowd = buyers.Buyers([shop], 100, ["lamp"], name).start()
    scene.wait_until("some orders", lambda: len(crowd.told) >= 20)
    restart(shop)
    crowd.join()
    scene.wait_until("ready again", lambda: is_ready(shop))
    judge.same((crowd.count("sold"), crowd.count("sold out")), (60, 40), "what buyers were told")
    sales.judge_table(stage, judge, crowd, name)
    judge.same(stage.ask_sql("SELECT stock FROM article", name), [["0"]], "stock")


def looks_and_counts(stage):
    """How often the shop has noted its figures, and counted the orders."""
    rows = dict(stage.ask_sql("SELECT relname, CASE relname WHEN 'orders' THEN seq_scan ELSE"
                              " n_tup_upd END FROM pg_stat_user_tables", "many"))
    return int(rows["seller"]), int(rows["orders"])


def many_orders(stage, _chromium, judge):
    """Many orders are counted less often, and a count that takes too long makes nobody unready"""
    stage.ask_sql("CREATE DATABASE many")
    stage.ask_sql("ALTER DATABASE many SET max_parallel_workers_per_gather = 0")
    shop = open_shop(stage, "many", SHOP_ARTICLES="lamp:1")
    scene.wait_until("ready", lambda: is_ready(shop))
    stage.ask_sql("SET session_replication_role = replica;"
                  "INSERT INTO orders (id, article, quantity, answer, seller)"
                  " SELECT i, 'lamp', 1, 'sold', 's' FROM generate_series(1, 300000) i", "many")
    scene.wait_until("their sum", lambda: verdicts.state(shop)["sum"]["sold"] == 300000)
    before = looks_and_counts(stage)
    after = scene.wait_until("looks", lambda: [now for now in [looks_and_counts(stage)]
                                               if now[0] - before[0] >= 12])[0]
    looks, counts = after[0] - before[0], after[1] - before[1]
    judge.check(counts * 3 <= looks * 2, f"{counts} counts of the orders in {looks} looks")
    me = verdicts.identity(shop)
    waits = ("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
             f" AND application_name = 'shop {me}'")
    with stage.locked_table("orders", "many"):
        scene.wait_until("a count that waits", lambda: stage.ask_sql(waits, "many"))
        scene.wait_until("its end", lambda: not is_ready(shop) or not stage.ask_sql(waits, "many"))
        judge.check(is_ready(shop), "it is ready")
        judge.same(verdicts.state(shop).get("sum", {}).get("sold"), 300000, "what was counted last")


def late_write(stage, _chromium, judge):
    """A process stands still for longer than its lease: the row refuses its late write"""
    settings = {"SHOP_ARTICLES": "lamp:14", "SHOP_DECIDE_MS": "100",
                "HIRELOCK_WATCHDOG_TIMEOUT": "1s"}
    stalled, living = (open_shop(stage, "late", **settings) for _ in range(2))
    me = verdicts.identity(living)
    crowd = buyers.Buyers([stalled, living], 24, ["lamp"], "late").start()

    def is_fenced():
        held = sales.stop_holder(stage, stalled, crowd, ["lamp"], 2)
        # The worst moment for a late write: the next hold has read, and not yet written.
        scene.wait_until("the other process has the lock",
                         lambda: stage.held_by(me, "lamp") or crowd.open[living] == 0)
        stalled.signal(signal.SIGCONT)
        return verdicts.metric(stalled, "shop_fenced_total") > 0 or not held

    scene.wait_until("a late write", is_fenced)
    crowd.join()
    judge.check(verdicts.metric(stalled, "shop_fenced_total") > 0, "no write was refused")
    judge.same((crowd.count("sold"), crowd.count("sold out")), (14, 10), "what buyers were told")
    sales.judge_table(stage, judge, crowd, "late")
    judge.same(stage.ask_sql("SELECT stock FROM article", "late"), [["0"]], "stock")


def judge_reasons(judge, shop):
    """PostgreSQL's own words are for the log: they may name the host, the user and more."""
    status, text = web.buy(shop.address, {**ORDER, "order": "reasons"})
    judge.same((status, json.loads(text)),
               (503, {"order": "reasons", "answer": "try again with the same id"}), "a buyer is told")
    reasons = [json.loads(web.ask(shop.address, "GET", "/ready")[1])["error"],
               verdicts.state(shop)["problem"]]
    for reason in reasons:
        judge.check("PostgreSQL" in reason and ":" not in reason, f"the reason is {reason!r}")
    for words in ("shop: PostgreSQL: ", "shop: order "):
        judge.check(words in shop.said(), f"no line '{words}...' that says why: {shop.said()}")


def postgres_restarts(stage, _chromium, judge):
    """PostgreSQL is killed under load and comes back"""
    def restart(shop):
        stage.sql_server.end(signal.SIGQUIT)
        scene.wait_until("not ready", lambda: not is_ready(shop))
        judge.same(web.ask(shop.address, "GET", "/health")[0], 200, "health without PostgreSQL")
        judge_reasons(judge, shop)
        stage.start_postgres()
    restart_under_load(stage, judge, "sql", restart)


def redis_restarts(stage, _chromium, judge):
    """Redis is killed under load and comes back empty: tokens begin anew, and are raised"""
    def restart(shop):
        stage.redis.end(signal.SIGKILL)
        scene.wait_until("not ready", lambda: not is_ready(shop))
        judge.same(web.ask(shop.address, "GET", "/health")[0], 200, "health without Redis")
        # As if it had sold for long: the new server's tokens would not come there by themselves.
        stage.ask_sql("UPDATE article SET token = 1::bigint << 50", "redis")
        stage.start_redis()
    restart_under_load(stage, judge, "redis", restart)


def full_house(stage, _chromium, judge):
    """Too many connections wait outside; those inside are served, with both servers in reach"""
    shop = open_shop(stage, "crowded", SHOP_ARTICLES="lamp:10", SHOP_CONNECTIONS="50")
    inside = http.client.HTTPConnection(*shop.address, timeout=60)
    inside.request("GET", "/health")
    inside.getresponse().read()
    crowd = [socket.create_connection(shop.address, 60) for _ in range(100)]
    for i in range(5):
        inside.request("POST", "/buy", json.dumps({**ORDER, "order": f"inside-{i}"}), JSON)
        answer = inside.getresponse()
        judge.same((answer.status, bool(answer.read())), (200, True), "bought in a full house")
    for one in crowd:
        one.close()
    judge.same(web.buy(shop.address, ORDER)[0], 200, "bought when they have left")
    judge.check(verdicts.metric(shop, "shop_door_shut_total") > 0, "the door was never shut")
    inside.close()


def trickle(crowd, stop):
    """A byte now and then, so that none of them is silent."""
    while not stop.wait(0.1):
        for one in crowd:
            with contextlib.suppress(OSError):
                one.send(b"x")


def trickling_house(stage, _chromium, judge):
    """A house full of those who never ask anything is emptied; who waits for an answer stays"""
    shop = open_shop(stage, "trickle", SHOP_ARTICLES="lamp:10,chair:10", SHOP_CONNECTIONS="50",
                     SHOP_WAIT_MS="8000")
    stage.ask_redis("HSET", "article:lamp", "somebody:1", "1")  # for good: it has no lease
    stop = threading.Event()
    with contextlib.ExitStack() as stack:
        waits = stack.enter_context(socket.create_connection(shop.address, 60))
        waits.sendall(web.buy_bytes(ORDER))
        crowd = [stack.enter_context(socket.create_connection(shop.address, 60)) for _ in range(40)]
        for one in crowd:
            one.sendall(b"GET /he")
        stack.callback(stop.set)
        threading.Thread(target=trickle, args=(crowd, stop), daemon=True).start()
        try:
            status = web.buy(shop.address, {**ORDER, "order": "late", "article": "chair"})[0]
        except (OSError, http.client.HTTPException) as error:
            status = str(error)
        judge.same(status, 200, "bought in spite of them")
        judge.check(b" 503 " in waits.makefile("rb").readline(), "who waited has no answer")
    stage.ask_redis("DEL", "article:lamp")


def ends_under_load(stage, _chromium, judge):
    """SIGTERM under load: what is in flight is answered, all locks are released, exit code 0"""
    settings = {"SHOP_ARTICLES": "lamp:60", "SHOP_DECIDE_MS": "20"}
    leaving, staying = (open_shop(stage, "ending", **settings) for _ in range(2))
    me = verdicts.identity(leaving)
    crowd = buyers.Buyers([leaving, staying], 100, ["lamp"], "ending").start()
    scene.wait_until("some orders", lambda: len(crowd.told) >= 20 and crowd.open[leaving] > 0)
    judge.same(leaving.end(signal.SIGTERM), 0, "exit code")
    judge.check(not stage.held_by(me, "lamp"), "it still holds a lock")
    crowd.join()
    judge.same((crowd.count("sold"), crowd.count("sold out")), (60, 40), "what buyers were told")
    sales.judge_table(stage, judge, crowd, "ending")
    judge.same(stage.ask_sql(f"SELECT has_left FROM seller WHERE id = '{me}'", "ending"), [["t"]],
               "it has taken leave")


def is_shut(shop):
    try:
        socket.create_connection(shop.address).close()
        return False
    except OSError:
        return True


def two_signals(stage, _chromium, judge):
    """The second signal ends the waits for locks, and those buyers are told to come again"""
    shop = open_shop(stage, "twice", SHOP_ARTICLES="lamp:1", SHOP_WAIT_MS="600000")
    stage.ask_redis("HSET", "article:lamp", "somebody:1", "1")  # for good: it has no lease
    with socket.create_connection(shop.address, 60) as connection:
        connection.sendall(web.buy_bytes({**ORDER, "order": "waits"}))
        scene.wait_until("the order", lambda: verdicts.metric(shop, "hirelock_waiters") > 0)
        shop.signal(signal.SIGINT)
        scene.wait_until("the door is shut", lambda: is_shut(shop))
        judge.check(not shop.has_ended(), "it did not wait for the order")
        shop.signal(signal.SIGINT)
        judge.check(b" 503 " in connection.makefile("rb").readline(), "the answer is not 503")
    judge.same(shop.end(0), 0, "exit code")
    stage.ask_redis("DEL", "article:lamp")


def lost_entry(stage, _chromium, judge):
    """A process enters itself anew: when the answer was lost, and when its row is"""
    shop, between = open_relayed(stage, "entries", b"INSERT INTO seller", SHOP_ARTICLES="lamp:1")
    scene.wait_until("ready", lambda: is_ready(shop))
    judge.same(between.lose, None, "the answer that is to be lost")
    me = verdicts.identity(shop)
    stage.ask_sql("DELETE FROM seller", "entries")
    scene.wait_until("its row", lambda: stage.ask_sql("SELECT id FROM seller", "entries") == [[me]])
    judge.check(is_ready(shop), "it is ready")


def hurry_without_postgres(stage, _chromium, judge):
    """After the second signal no order asks a PostgreSQL that hangs any more"""
    shop, between = open_relayed(stage, "hung", SHOP_ARTICLES="lamp:1", SHOP_WORKERS="4",
                                 SHOP_POOL="1")
    scene.wait_until("ready", lambda: is_ready(shop))
    between.is_silent = True
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(shop.address, 60))
                 for _ in range(40)]
        for i, one in enumerate(crowd):
            one.sendall(web.buy_bytes({**ORDER, "order": f"hung-{i}"}))
        scene.wait_until("the queue", lambda: verdicts.metric(shop, "shop_orders_open") == 40)
        shop.signal(signal.SIGTERM)
        scene.wait_until("the door is shut", lambda: is_shut(shop))
        shop.signal(signal.SIGTERM)
        before = between.connections
        lines = [one.makefile("rb").readline() for one in crowd]
        judge.same([line for line in lines if b" 503 " not in line], [], "other answers than 503")
        judge.same(shop.end(0), 0, "exit code")
    more = between.connections - before
    judge.check(more <= 3, f"{more} connections to PostgreSQL after the second signal")


LAWS = [bad_settings, bad_requests, buyers_who_leave, many_orders, late_write, slow_pages, unread_answers,
        postgres_restarts, redis_restarts, full_house, trickling_house, ends_under_load, two_signals,
        lost_entry, hurry_without_postgres]
