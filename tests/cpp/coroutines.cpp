/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Coroutines that wait for locks; none in C++17. */
#include "cpp/kit.hpp"

#if defined(__cpp_impl_coroutine)
#include <atomic>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using hirelock::errc;

/* A coroutine that begins at once, ends by itself, and says so. */
struct task {
    struct promise_type {
        task get_return_object()
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
            throw; /* ends the program, out of a completion */
        }
    };
};

/* The last thing of a coroutine, behind all its objects: it has ended. */
struct at_end {
    explicit at_end(counter &of) : ended(of)
    {
    }
    at_end(const at_end &) = delete;
    at_end &operator=(const at_end &) = delete;
    ~at_end()
    {
        ended.add();
    }
    counter &ended;
};

static task add(hirelock::client &client, hirelock::mutex &lock, int &sum, int times,
                counter &ended)
{
    const at_end end(ended);
    const hirelock::owner owner(client);
    for (int i = 0; i < times; i++) {
        co_await lock.acquire_async(owner);
        const int before = sum; /* unprotected but for the lock */
        co_await lock.inspect_async();
        sum = before + 1;
        co_await lock.release_async(owner);
    }
}

LAW(coroutines, exclude_each_other)
{
    hirelock::client client(law_url()), other(law_url());
    hirelock::mutex lock(client, "stock"), same(other, "stock");
    counter ended;
    int sum = 0;
    for (int i = 0; i < 8; i++)
        add(i % 2 ? client : other, i % 2 ? lock : same, sum, 10, ended);
    check(ended.wait(8));
    check(sum == 80);
}

static task visit_all(hirelock::client &client, counter &ended)
{
    const at_end end(ended);
    const hirelock::owner owner(client);
    std::error_code ec;
    co_await client.ping_async();
    co_await client.fence_set_async(hirelock::fenced_write("data", "1").token(9));
    check(co_await client.fence_token_async("data") == 9);
    const hirelock::command echo({"ECHO", "x"}); /* g++ 12 takes no list inside of co_await */
    check((co_await hirelock::run_async(client, echo)).text == "x");

    hirelock::mutex lock(client, "stock");
    co_await lock.acquire_async(owner);
    check((co_await lock.inspect_async()).mine);
    hirelock::hold hold(lock.get(), owner.get(), std::adopt_lock);
    co_await hold.release_async();
    check(!hold);
    co_await lock.release_async(owner).redirect_error(ec);
    check(ec == errc::not_owner);

    hirelock::permits seats(client, "seats");
    co_await seats.set_total_async(3);
    const hl_permit id = co_await seats.acquire_async(owner);
    const std::vector<hl_permit> ids = co_await seats.acquire_many_async(owner, 2);
    check(co_await seats.available_async() == 0);
    co_await seats.release_async(id);
    co_await seats.release_many_async(ids);
    check(co_await seats.available_async().redirect_error(ec) == 3 && !ec);
}

LAW(coroutines, have_values_and_codes)
{
    hirelock::client client(law_url());
    counter ended;
    visit_all(client, ended);
    check(ended.wait(1));
}

static task gather_nothing(hirelock::client &client, counter &ended)
{
    const at_end end(ended);
    const hirelock::owner owner(client);
    const auto at_once = hirelock::acquire_options().wait(0s);
    std::error_code ec;
    hirelock::permits seats(client, "seats");
    check((co_await seats.acquire_many_async(owner, 2, at_once).redirect_error(ec)).empty());
    check(ec == errc::busy);
    check((co_await seats.acquire_many_async(owner, 1000000000).redirect_error(ec)).empty());
    check(ec == errc::invalid); /* it did not begin */
    hirelock::multi_lock none;
    check((co_await none.release_each_async(owner).redirect_error(ec)).empty());
    check(ec == errc::invalid);
}

LAW(coroutines, get_no_items_of_a_call_that_failed)
{
    hirelock::client client(law_url());
    counter ended;
    gather_nothing(client, ended);
    check(ended.wait(1));
}

static task catch_failure(hirelock::mutex lock, const hirelock::owner &owner,
                          const hirelock::cancel &cancel, std::error_code &code, counter &ended)
{
    const at_end end(ended);
    try {
        co_await lock.acquire_async(owner, hirelock::acquire_options().cancel_by(cancel));
    } catch (const hirelock::error &failure) {
        code = failure.code();
    }
}

LAW(coroutines, are_cancelled)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const hirelock::owner owner(client);
    hirelock::cancel cancel;
    counter ended;
    std::error_code code;
    const std::lock_guard<hirelock::mutex> guard(lock);
    catch_failure(hirelock::mutex(client, "stock"), owner, cancel, code, ended);
    check(wait_for_waiters(client, 1) && ended.count() == 0);
    cancel.fire();
    check(ended.wait(1));
    check(code == std::errc::operation_canceled && !lock.is_held(owner));
}

LAW(coroutines, go_on_at_once_when_a_call_cannot_begin)
{
    counter ended;
    std::error_code code;
    hirelock::cancel cancel;
    catch_failure(hirelock::mutex(), hirelock::owner(), cancel, code, ended);
    check(ended.count() == 1 && code == errc::invalid);
}

/* Goes on once, by whatever way it hears of the want of memory. */
static task echo(hirelock::client &client, bool by_code, std::error_code &code, counter &ended)
{
    const at_end end(ended);
    hirelock::reply got;
    try {
        const hirelock::command command = hirelock::command({"ECHO", "x"}).key("x");
        const auto operation = hirelock::run_async(client, command);
        if (by_code)
            got = co_await operation.redirect_error(code);
        else
            got = co_await operation;
        check(!code == (got.text == "x"));
    } catch (const hirelock::error &failure) {
        check(!by_code);
        code = failure.code();
    } catch (const std::bad_alloc &) {
        code = errc::no_memory; /* of the command, or of the operation */
    }
}

LAW(coroutines, go_on_when_memory_is_short)
{
    if (!failing_malloc_available())
        return;
    hirelock::client client(law_url());
    for (const bool by_code : {true, false}) {
        const auto run = [&] {
            counter ended;
            std::error_code code;
            try {
                echo(client, by_code, code, ended);
            } catch (const std::bad_alloc &) {
                return false; /* of the coroutine itself */
            }
            check(ended.wait(1) && ended.count() == 1);
            check(!code || code == errc::no_memory);
            return !code;
        };
        check(run());
        check(short_of_memory(run) > 5);
    }
}

LAW(coroutines, end_with_the_close_of_their_client)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const hirelock::owner owner(client);
    hirelock::cancel cancel;
    counter ended;
    std::error_code code;
    lock.lock();
    catch_failure(hirelock::mutex(client, "stock"), owner, cancel, code, ended);
    client.close();
    check(ended.count() == 1 && code == errc::canceled);
}

static task note_thread(hirelock::client &client, std::thread::id &there, counter &ended)
{
    const at_end end(ended);
    co_await client.ping_async();
    there = std::this_thread::get_id();
}

LAW(coroutines, go_on_inside_dispatch)
{
    hirelock::client client(law_url(), hirelock::client_options().flags(HL_CLIENT_DISPATCH));
    counter ended;
    std::thread::id there;
    note_thread(client, there, ended);
    const struct deadline deadline = deadline_of_wait(60000);
    while (ended.count() == 0 && !deadline_is_over(deadline)) {
        client.dispatch();
        deadline_nap();
    }
    check(ended.count() == 1 && there == std::this_thread::get_id());
}

/* A coroutine that its caller destroys. */
struct kept_task {
    struct promise_type {
        kept_task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
        }
    };
    std::coroutine_handle<promise_type> handle;
};

static kept_task wait_for_lock(hirelock::mutex &lock, const hirelock::owner &owner)
{
    co_await lock.acquire_async(owner);
}

LAW(coroutines, may_not_be_destroyed_while_they_wait)
{
    const pid_t child = fork();
    if (child == 0) {
        std::set_terminate([] { _exit(7); });
        hirelock::client client(law_url());
        hirelock::mutex lock(client, "stock");
        const hirelock::owner owner(client);
        lock.lock();
        wait_for_lock(lock, owner).handle.destroy();
        _exit(0);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

#endif
