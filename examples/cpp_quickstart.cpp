/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The shortest program in C++: take a lock, work, let go; and see how it went. */
#include <hirelock/hirelock.hpp>

#include <chrono>
#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

static void work(hirelock::client &client)
{
    hirelock::mutex stock(client, "stock:42");
    hirelock::mutex prices(client, "prices:42");
    {
        const std::scoped_lock both(stock, prices); /* the guards of the standard library */
    }
    if (const std::unique_lock guard(stock, 500ms); guard) /* renewed while held */
        std::cout << "mine\n";

    /* Where the result matters: others may have been inside if the hold was lost. */
    hirelock::hold hold = stock.acquire(hirelock::acquire_options().wait(500ms));
    if (hold.is_held())
        std::cout << "still mine\n";
    hold.release();
}

int main(int argc, char **argv)
{
    try {
        hirelock::client client(argc > 1 ? argv[1] : "redis://127.0.0.1");
        work(client);
    } catch (const hirelock::error &failure) {
        std::cerr << failure.what() << '\n';
        return failure.code() == std::errc::timed_out ? 2 : 1;
    }
    std::cout << "released\n";
}
