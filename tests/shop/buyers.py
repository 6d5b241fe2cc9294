# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Buyers, all at once: each has an order with an id of its own, and asks one process after the other
with the same id until it has been told "sold" or "sold out"."""

import asyncio
import threading
import time

import web

GIVE_UP_S = 60


class Buyers:
    """A crowd in a thread of its own. Other threads may read its counts."""

    def __init__(self, shops, count, articles, prefix="buyer"):
        self.shops = shops
        self.orders = [{"order": f"{prefix}-{i}", "article": articles[i % len(articles)], "quantity": 1}
                       for i in range(count)]
        self.told = {}                       # by the order's id: "sold" or "sold out"
        self.open = {shop: 0 for shop in shops}  # requests that have no answer yet
        self.repeats = 0                     # requests after the first one of an order
        self.wrong = []                      # answers that no buyer should ever get
        self.thread = threading.Thread(target=lambda: asyncio.run(self.crowd()), daemon=True)

    def start(self):
        self.thread.start()
        return self

    def join(self):
        self.thread.join()

    async def ask(self, shop, order):
        """True: this buyer has an answer."""
        self.open[shop] += 1
        try:
            status, answer = await web.buy_async(shop.address, order)
        except OSError:
            return False
        finally:
            self.open[shop] -= 1
        if status in (200, 409):
            self.told[order["order"]] = answer["answer"]
        elif status != 503:
            self.wrong.append((status, answer))
        return status != 503

    async def buyer(self, number, order):
        end = time.monotonic() + GIVE_UP_S
        asks = 0
        while time.monotonic() < end:
            if await self.ask(self.shops[(number + asks) % len(self.shops)], order):
                return
            asks += 1
            self.repeats += 1
            await asyncio.sleep(min(0.05 * asks, 1))

    async def crowd(self):
        await asyncio.gather(*(self.buyer(i, order) for i, order in enumerate(self.orders)))

    def count(self, answer):
        return sum(told == answer for told in self.told.values())
