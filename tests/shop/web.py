# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Requests to the shop, one on each connection, whose answers are whole or an error."""

import asyncio
import http.client
import json


def ask(address, method, path, body=None, headers=None):
    """(status, text). OSError or HTTPException: there is no answer."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def buy(address, order):
    return ask(address, "POST", "/buy", json.dumps(order), {"Content-Type": "application/json"})


def buy_bytes(order):
    """POST /buy as the bytes of a request."""
    body = json.dumps(order).encode()
    return (b"POST /buy HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


async def buy_async(address, order):
    """(status, object). OSError: there is no whole answer."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(buy_bytes(order))
        await writer.drain()
        text = await reader.read()
    finally:
        writer.close()
    head, _, body = text.partition(b"\r\n\r\n")
    try:
        return int(head.split()[1]), json.loads(body)
    except (IndexError, ValueError):
        raise ConnectionError("the answer is cut off") from None
