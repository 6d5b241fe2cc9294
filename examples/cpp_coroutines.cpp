/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that exclude each other, in one thread that never blocks: each visitor of a shop is a
 * coroutine with an owner of its own, and the client's callbacks run in the program's loop.
 */
#include "example.h"

#include <hirelock/hirelock.hpp>

#include <array>
#include <chrono>
#include <coroutine>
#include <exception>
#include <iostream>
#include <poll.h>

using namespace std::chrono_literals;

constexpr int visitors = 5, pieces = 3;

/* A coroutine that begins at once, and that nobody waits for. */
struct visit {
    struct promise_type {
        visit get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
};

struct shop {
    hirelock::client &client;
    hirelock::mutex till;
    hirelock::cancel closing{};
    int left = pieces;
    int sold = 0;
    int ended = 0;
};

/* Nothing is thrown between the acquire and the release, so the release is always reached. */
static visit buy(shop &shop)
{
    std::error_code ec;
    const hirelock::owner owner(shop.client, ec);
    if (!ec)
        co_await shop.till
            .acquire_async(owner, hirelock::acquire_options().wait(5s).cancel_by(shop.closing))
            .redirect_error(ec);
    if (!ec) {
        const int left = shop.left;
        co_await shop.till.inspect_async().redirect_error(ec); /* others could come in here */
        if (left > 0) {
            shop.left = left - 1;
            shop.sold++;
        }
        co_await shop.till.release_async(owner).redirect_error(ec);
    }
    if (ec)
        std::cerr << "a visitor: " << ec.message() << '\n';
    shop.ended++;
}

static int run(const char *url)
{
    hirelock::client client(url, hirelock::client_options().flags(HL_CLIENT_DISPATCH));
    shop shop{client, hirelock::mutex(client, "till")};
    pollfd ready{client.fd(), POLLIN, 0};

    for (int i = 0; i < visitors; i++)
        buy(shop);
    while (shop.ended < visitors && poll(&ready, 1, 10000) > 0)
        client.dispatch(); /* the coroutines go on in here */
    shop.closing.fire();   /* no visitor may outlive the shop */
    client.close();
    std::cout << shop.sold << " of " << pieces << " pieces sold, " << shop.left << " left\n";
    return shop.sold == pieces && shop.left == 0 && shop.ended == visitors ? 0 : 1;
}

static const char does[] = "Coroutines that exclude each other in one thread.";

int main(int argc, char **argv)
{
    try {
        return run(example_url(argc, argv, does));
    } catch (const std::exception &failure) {
        std::cerr << "cpp_coroutines: " << failure.what() << '\n';
        return 1;
    }
}
