/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Callbacks of a client and of a hold, and what may not be done in them. */
#include "cpp/kit.hpp"

#include <atomic>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

LAW(events, of_a_loss_come_to_the_hold_and_to_the_client)
{
    counter of_hold, of_client;
    std::atomic<bool> in_order{false};
    const auto listener = [&](const hl_event &event) {
        if (event.kind == HL_EVENT_LOST)
            of_hold.add();
    };
    hirelock::client_options options;
    options.on_event([&](const hl_event &event) {
        if (event.kind == HL_EVENT_LOST) {
            in_order = of_hold.count() == 1;
            of_client.add();
        }
    });
    hirelock::client client(law_url(), options);
    hirelock::mutex lock(client, "stock");
    hirelock::hold hold = lock.acquire(hirelock::acquire_options().on_event(listener));
    const hirelock::client moved = std::move(client); /* the functions stay where they are */
    lock.force_release();
    check(of_client.wait(1) && of_hold.count() == 1 && in_order);
    check(code_of([&] { hold.release(); }) == hirelock::errc::lost);
}

LAW(events, a_callback_may_not_close_its_client)
{
    counter calls;
    std::error_code closed, locked;
    hirelock::client client;
    hirelock::mutex lock;
    hirelock::client_options options;
    options.on_event([&](const hl_event &event) {
        if (event.kind != HL_EVENT_LOST)
            return;
        client.close(closed);
        locked = code_of([&] { lock.lock(); });
        calls.add();
    });
    client = hirelock::client(law_url(), options);
    lock = hirelock::mutex(client, "stock");
    hirelock::hold hold = lock.acquire();
    lock.force_release();
    check(calls.wait(1));
    check(closed == std::errc::resource_deadlock_would_occur && client);
    check(locked == hirelock::errc::invalid);
}

LAW(events, an_exception_in_a_callback_ends_the_program)
{
    const pid_t child = fork();
    if (child == 0) {
        std::set_terminate([] { _exit(7); });
        hirelock::client client(law_url());
        hirelock::mutex lock(client, "stock");
        lock.inspect_async().start([](auto &) { throw 1; });
        client.close(); /* runs what waits */
        _exit(0);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static counter heard;

static void hear(const hl_event &)
{
    heard.add();
}

LAW(events, of_a_hold_come_to_a_plain_function_too)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::hold hold = lock.acquire(hirelock::acquire_options().on_event(hear));
    lock.force_release();
    check(code_of([&] { hold.release(); }) == hirelock::errc::lost);
    check(heard.wait(1));
}

LAW(events, log_lines_come_to_a_function)
{
    counter lines;
    hirelock::client_options options;
    options.on_log([&](hl_log_level, const char *) { lines.add(); }, HL_LOG_DEBUG);
    const hirelock::client client(law_url(), options);
    check(lines.wait(1));
}

LAW(events, logins_come_from_a_function)
{
    redis_do(law_server(), "CONFIG SET requirepass secret");
    std::atomic<int> asked{0};
    std::string address;
    hirelock::client_options options;
    options.on_credentials([&](const hl_credentials_request &request, hirelock::credentials item) {
        asked++;
        address = request.address;
        std::error_code ec;
        item.set("lonely", nullptr, {}, ec);
        check(ec == hirelock::errc::invalid);
        item.set(nullptr, "secret");
    });
    {
        hirelock::client client(law_url(), options);
        client.ping();
    }
    check(asked > 0 && !address.empty());

    options.on_credentials([](const hl_credentials_request &, hirelock::credentials item) {
        std::error_code ec;
        item.fail("none", ec);
        item.fail("the token service is closed");
    });
    std::string text;
    try {
        const hirelock::client refused(law_url(), options);
    } catch (const hirelock::error &failure) {
        text = failure.what();
    }
    check(text.find("the token service is closed") != std::string::npos);
    redis_do(law_server(), "CONFIG SET requirepass %s", "");
}

LAW(events, servers_are_visited)
{
    hirelock::client client(law_url());
    std::error_code ec;
    int visits = 0;
    const auto visit = [&](const hl_node &node) {
        check(node.is_connected != 0);
        visits++;
    };
    check(client.nodes(visit) == 1 && client.nodes(visit, ec) == 1 && !ec && visits == 2);
    try {
        client.nodes([](const hl_node &node) { throw std::string(node.address); });
        never("no exception");
    } catch (const std::string &address) {
        check(!address.empty());
    }
}
