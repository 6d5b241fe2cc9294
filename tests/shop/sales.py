# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The great sale with the lock, in which a process is killed, and the same sale without it."""

import os
import signal

import buyers
import scene
import verdicts

STOCK = {"lamp": 120, "chair": 100, "table": 80}
BUYERS = 500

# What the page has shown since it was opened.
WATCH = """(() => {
  window.seen = {stocks: new Set(), holders: new Set()};
  const look = () => {
    seen.stocks.add(document.getElementById('stock').textContent);
    for (const line of document.querySelectorAll('#articles tr'))
      seen.holders.add(line.children[4].textContent) };
  new MutationObserver(look).observe(document.body,
                                     {subtree: true, childList: true, characterData: true});
  look(); })()"""


def articles(stock):
    return ",".join(f"{name}:{count}" for name, count in stock.items())


def text(chromium, name):
    return chromium.ask(f"document.getElementById('{name}').textContent")


def shows(name, value):
    return f"document.getElementById('{name}').textContent === '{value}'"


def open_page(chromium, shop):
    chromium.show(shop.url)
    chromium.wait_for("document.querySelectorAll('#articles tr').length > 0")


def stop_holder(stage, shop, crowd, names, enough):
    """Stops the process at a moment when it holds a lock and buyers wait for it, after so many have
    an answer. Returns the articles whose locks it holds: none when the sale was over before."""
    me = verdicts.identity(shop)

    def holds():
        if len(crowd.told) < enough:
            return None
        shop.signal(signal.SIGSTOP)
        os.waitpid(shop.pid, os.WUNTRACED)
        held = [name for name in names if stage.held_by(me, name)]
        if (not held or crowd.open[shop] == 0) and crowd.thread.is_alive():
            shop.signal(signal.SIGCONT)
            return None
        return [held]
    return scene.wait_until("a moment at which the process holds a lock", holds)[0]


def judge_table(stage, judge, crowd, database="postgres"):
    """What each buyer was told is in the table, once, and nothing else."""
    rows = stage.ask_sql("SELECT id, answer FROM orders", database)
    judge.same(len(rows), len(crowd.orders), "orders in the table")
    judge.same(dict(rows), crowd.told, "the orders and what their buyers were told")
    judge.same(crowd.wrong, [], "answers that no buyer should get")


def sale_with_kill(stage, chromium, judge):
    """500 buyers, 2 processes, one killed while it holds a lock: nothing oversold, no order lost"""
    settings = {"SHOP_ARTICLES": articles(STOCK), "SHOP_DECIDE_MS": "30"}
    dying, living = (stage.start_shop(**settings) for _ in range(2))
    open_page(chromium, living)
    chromium.ask(WATCH)
    crowd = buyers.Buyers([dying, living], BUYERS, list(STOCK)).start()
    held = stop_holder(stage, dying, crowd, STOCK, BUYERS // 5)
    told = len(crowd.told)
    dying.signal(signal.SIGKILL)
    dying.popen.wait()
    judge.check(held and told < BUYERS, f"killed with {held} held, when {told} had an answer")
    crowd.join()

    total = sum(STOCK.values())
    judge.same(crowd.count("sold"), total, "buyers that were told 'sold'")
    judge.same(crowd.count("sold out"), BUYERS - total, "buyers that were told 'sold out'")
    judge.check(crowd.repeats > 0, "no buyer had to ask again: the kill did nothing")
    judge_table(stage, judge, crowd)
    judge.same(dict(stage.ask_sql("SELECT article, sum(quantity) FROM orders"
                                  " WHERE answer = 'sold' GROUP BY article")),
               {name: str(count) for name, count in STOCK.items()}, "sold, by article")
    judge.same(stage.ask_sql("SELECT name FROM article WHERE stock <> 0"), [], "stock that is left")
    judge_page(chromium, judge, dying, living)
    again = buyers.Buyers([living], BUYERS, list(STOCK)).start()
    again.join()
    judge.same(again.told, crowd.told, "the same answers to the same orders")
    judge.same(stage.ask_sql("SELECT count(*) FROM orders"), [[str(BUYERS)]], "orders after that")


def judge_page(chromium, judge, dying, living):
    """The page, which was open all the time, says the same."""
    total = sum(STOCK.values())
    chromium.wait_for(f"{shows('orders', total)} && {shows('refused', BUYERS - total)}")
    for name, wanted in {"orders": total, "refused": BUYERS - total, "stock": 0, "oversold": 0,
                         "astray": 0, "locked": "on", "connection": "live"}.items():
        judge.same(text(chromium, name), str(wanted), f"the page's {name}")
    states = chromium.ask("Object.fromEntries([...document.querySelectorAll('#processes tr')].map("
                          "line => [line.children[0].textContent, line.dataset.state]))")
    judge.same({name.split()[0]: state for name, state in states.items()},
               {str(dying.pid): "gone", str(living.pid): "open"}, "the page's processes")
    stocks = chromium.ask("[...seen.stocks]")
    judge.check(len(stocks) > 5, f"the page's stock was seen to fall: {stocks}")
    holders = chromium.ask("[...seen.holders].filter(text => /^process [0-9]+, worker [0-9]+, for "
                           "[0-9]+ ms/.test(text))")
    judge.check(len(holders) > 2, f"the page has shown who holds a lock: {holders}")
    judge.check(chromium.ask("document.querySelectorAll('#waits li').length > 0"),
                "the page shows how long a lock was waited for")


def page_for_all(stage, chromium, judge):
    """The page in light and dark, wide and narrow, by keyboard, and with nothing from elsewhere"""
    living = stage.start_shop(SHOP_ARTICLES=articles(STOCK))
    open_page(chromium, living)
    chromium.events.clear()
    open_page(chromium, living)
    for scheme in ("light", "dark"):
        chromium.scheme(scheme)
        ground, ink = chromium.brightness("main")
        judge.check(ground is not None and (ground < 0.3 and ink > 0.5 if scheme == "dark"
                                            else ground > 0.8 and ink < 0.5),
                    f"{scheme}: brightness of the page {ground}, of text {ink}")
        for width in (1280, 360):
            chromium.size(width)
            judge.same(chromium.overflow(), 0, f"{scheme}, {width} pixels: too wide by")
    chromium.ask("document.getElementById('quantity').focus()")
    for kind in ("keyDown", "keyUp"):
        chromium.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)
    chromium.wait_for("document.getElementById('answer').textContent.endsWith('sold out')")
    judge.check(text(chromium, "answer").endswith(": sold out"),
                f"bought by keyboard: {text(chromium, 'answer')!r}")
    loaded = [event["params"]["request"]["url"] for event in chromium.events
              if event["method"] == "Network.requestWillBeSent"]
    judge.same([url for url in loaded if not url.startswith((living.url, "data:", "about:"))], [],
               "loaded from elsewhere")


def sale_without_lock(stage, chromium, judge):
    """The same without the lock: it oversells, so the checks above can fail"""
    stock, count = 60, 240
    stage.ask_sql("CREATE DATABASE control")
    shops = [stage.start_shop("control", SHOP_LOCK="off", SHOP_ARTICLES=f"lamp:{stock}",
                              SHOP_DECIDE_MS="40") for _ in range(2)]
    open_page(chromium, shops[0])
    crowd = buyers.Buyers(shops, count, ["lamp"], "control").start()
    crowd.join()
    sold = crowd.count("sold")
    judge.check(sold > stock, f"without the lock {sold} of {stock} were sold, and none too much")
    judge_table(stage, judge, crowd, "control")
    chromium.wait_for(shows("oversold", sold - stock))
    judge.same(text(chromium, "oversold"), str(sold - stock), "the page's oversold")
    judge.same(text(chromium, "locked"), "off", "the page's lock")
    print(f"     without a lock: oversold {sold - stock}; with hirelock: oversold 0", flush=True)


LAWS = [sale_with_kill, page_for_all, sale_without_lock]
