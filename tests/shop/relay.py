# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""Between a shop and PostgreSQL: passes on what both say, falls silent, or loses one answer."""

import asyncio
import threading

READY = b"Z\0\0\0\5I"  # the server's last words of an answer: it is idle


class Relay:
    """Of a thread of its own. Other threads may set is_silent and lose, and read the counts."""

    def __init__(self, target):
        self.target = target    # PostgreSQL's socket
        self.is_silent = False  # as a server that hangs: it takes all, and says nothing
        self.lose = None        # the answer to the next statement with these words; then None
        self.connections = 0    # so many have been made
        self.unanswered = 0     # so often has somebody spoken to it while it was silent
        self.port = None
        is_up = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(is_up)), daemon=True).start()
        is_up.wait()

    async def serve(self, is_up):
        server = await asyncio.start_server(self.welcome, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        is_up.set()
        await server.serve_forever()

    async def welcome(self, reader, writer):
        self.connections += 1
        there, back = await asyncio.open_unix_connection(self.target)
        loses = []
        answers = asyncio.ensure_future(self.answer(there, writer, loses))
        try:
            while data := await reader.read(65536):
                if self.is_silent:
                    self.unanswered += 1
                    continue
                if self.lose and self.lose in data:
                    self.lose = None
                    loses.append(data)
                back.write(data)
        except OSError:
            pass
        finally:
            answers.cancel()
            writer.close()
            back.close()

    async def answer(self, there, writer, loses):
        said = b""
        while data := await there.read(65536):
            said = (said + data)[-len(READY):]
            if not loses and not self.is_silent:
                writer.write(data)
            elif loses and said == READY:
                break
        writer.close()
