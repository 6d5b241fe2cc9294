# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""main.py --program FILE [--buyers N] [--without-lock] [--test]: see script/shop."""

import argparse
import signal
import sys
import threading

import buyers
import scene
import trial


def read_arguments():
    parser = argparse.ArgumentParser(prog="script/shop", allow_abbrev=False)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--buyers", type=int, default=0, metavar="N",
                        help="N buyers buy one piece each, all at once")
    parser.add_argument("--without-lock", action="store_true",
                        help="the same sale without the lock: it oversells")
    parser.add_argument("--test", action="store_true", help="looks at it in Chromium, and judges")
    arguments = parser.parse_args()
    if not 0 <= arguments.buyers <= 5000:
        parser.error("--buyers: from 0 to 5000")
    return arguments


def show(stage, arguments):
    """Until Ctrl-C."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    settings = {"SHOP_LOCK": "off" if arguments.without_lock else "on", "SHOP_DECIDE_MS": "40",
                "SHOP_ARTICLES": "lamp:120,chair:100,table:80"}
    stage.start()
    shops = [stage.start_shop(**settings) for _ in range(2)]
    for shop in shops:
        print(shop.url, flush=True)
    print("Ctrl-C ends it.", flush=True)
    if arguments.buyers:
        crowd = buyers.Buyers(shops, arguments.buyers, ["lamp", "chair", "table"]).start()
        while crowd.thread.is_alive() and not stop.wait(0.2):
            pass
        if not stop.is_set():
            print(f"{crowd.count('sold')} buyers were told that it is sold,"
                  f" {crowd.count('sold out')} that it is sold out", flush=True)
    stop.wait()
    return 0


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    arguments = read_arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    stage = scene.Scene(arguments.program)
    try:
        return trial.run(stage) if arguments.test else show(stage, arguments)
    except scene.Lack as lack:
        print(f"shop: {lack}", file=sys.stderr)
        return scene.LACKS
    except scene.Trouble as trouble:
        print(f"shop: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        stage.stop()


sys.exit(main())
