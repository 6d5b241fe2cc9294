/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each call that does not block, with a function for its end. */
#include "cpp/kit.hpp"

#include <future>
#include <memory>
#include <vector>

using hirelock::errc;
using hirelock::outcome;

/* Begins an operation, and waits for its outcome. */
template <class T, auto Call, class... Args>
static outcome<T> finish(const hirelock::operation<T, Call, Args...> &operation)
{
    auto promise = std::make_shared<std::promise<outcome<T>>>();
    auto future = promise->get_future();
    operation.start([promise](outcome<T> &result) { promise->set_value(result); });
    return future.get();
}

LAW(async, of_a_client)
{
    hirelock::client client(law_url());
    check(finish(client.ping_async()) && finish(client.ping_async(10s)));
    check(finish(client.ping_async(std::chrono::hours::max())));
    check(finish(client.ping_async(std::chrono::duration<double>(10.5))));
    check(finish(client.fence_set_async(hirelock::fenced_write("data", "1").token(7))));
    check(finish(client.fence_token_async("data")).get() == 7);
    check(finish(hirelock::run_async(client, hirelock::command({"ECHO", "x"}))).get().text == "x");
}

LAW(async, of_a_lock)
{
    hirelock::client client(law_url());
    const hirelock::owner owner(client), other(client);
    hirelock::mutex lock(client, "stock", hirelock::lock_options(HL_LOCK_FENCED));
    check(finish(lock.raise_token_async(100)));
    check(finish(lock.acquire_async(owner)));
    check(lock.token(owner) > 100 && finish(lock.inspect_async()).get().mine);
    const outcome<void> busy =
        finish(lock.acquire_async(other, hirelock::acquire_options().wait(0s)));
    check(!busy && busy.code() == errc::busy && busy.reason().busy.locked);
    check(finish(lock.update_lease_async(owner, 1h)));
    check(finish(lock.release_async(owner)));
    outcome<void> late = finish(lock.release_async(owner));
    check(late.code() == errc::not_owner && code_of([&] { late.get(); }) == errc::not_owner);
    check(finish(lock.acquire_async(owner)));
    check(finish(lock.set_and_release_async(owner, hirelock::fenced_write("data", "1"))));
    check(finish(lock.force_release_async()).code() == errc::missing);
}

LAW(async, of_a_hold)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::hold hold = lock.acquire(hirelock::owner(client));
    check(finish(hold.release_async()) && !hold);
    hold = lock.acquire(); /* of a thread: it needs an owner */
    std::error_code ec;
    hold.release_async().start([](auto &) { never("it does not run"); }, ec);
    check(ec == errc::invalid && hold.is_held());
}

LAW(async, of_a_multi_lock)
{
    hirelock::client client(law_url());
    const hirelock::owner owner(client);
    hirelock::mutex left(client, "left"), right(client, "right");
    hirelock::multi_lock both({&left, &right});
    check(finish(both.acquire_async(owner)));
    right.force_release();
    outcome<std::vector<int>> codes = finish(both.release_each_async(owner));
    check(codes.code() == errc::lost);
    check(codes.value()[0] == 0 && codes.value()[1] == HL_ELOST);
}

LAW(async, of_permits)
{
    hirelock::client client(law_url());
    const hirelock::owner owner(client);
    hirelock::permits seats(client, "seats");
    check(finish(seats.try_set_total_async(1, 1min)) && finish(seats.set_total_async(4)));
    check(finish(seats.add_async(1)) && finish(seats.total_async()).get() == 5);
    const hl_permit id = finish(seats.acquire_async(owner)).get();
    const std::vector<hl_permit> ids = finish(seats.acquire_many_async(owner, 3)).get();
    check(ids.size() == 3 && seats.is_held(ids[2]) && seats.is_held(id));
    check(finish(seats.available_async()).get() == 1 && finish(seats.acquired_async()).get() == 4);
    check(finish(seats.update_lease_async(id, 1h)));
    check(finish(seats.lease_left_async(id)).get() > 1800000);
    check(finish(seats.release_async(id)) && finish(seats.release_many_async(ids)));
    check(finish(seats.release_async(id)).code() == errc::missing);
    check(finish(seats.remove_async()));
}

LAW(async, of_a_semaphore)
{
    hirelock::client client(law_url());
    hirelock::semaphore doors(client, "doors");
    check(finish(doors.release_if_exists_async(1)).code() == errc::missing);
    check(finish(doors.try_set_permits_async(2)) && finish(doors.add_permits_async(1)));
    check(finish(doors.try_set_permits_async(2, 1us)).code() == errc::exists);
    check(code_of([&] { finish(doors.try_set_permits_async(2, std::chrono::hours::max())); }) ==
          errc::invalid);
    check(finish(doors.acquire_async(3)) && finish(doors.available_async()).get() == 0);
    check(finish(doors.acquire_async(1, hirelock::wait_options().wait(0s))).code() == errc::busy);
    check(finish(doors.release_async(2)) && finish(doors.drain_async()).get() == 2);
}

LAW(async, of_a_latch)
{
    hirelock::client client(law_url());
    hirelock::latch gate(client, "gate");
    check(finish(gate.try_set_count_async(2)) && finish(gate.count_async()).get() == 2);
    check(finish(gate.wait_async(hirelock::wait_options().wait(0s))).code() == errc::busy);
    check(finish(gate.count_down_async()) && finish(gate.remove_async()));
    check(finish(gate.wait_async()));
}

LAW(async, runs_inside_dispatch)
{
    hirelock::client client(law_url(), hirelock::client_options().flags(HL_CLIENT_DISPATCH));
    const std::thread::id here = std::this_thread::get_id();
    std::thread::id there;
    bool is_over = false;
    client.ping_async().start([&](outcome<void> &) {
        there = std::this_thread::get_id();
        is_over = true;
    });
    const struct deadline deadline = deadline_of_wait(60000);
    while (!is_over && !deadline_is_over(deadline)) {
        client.dispatch();
        deadline_nap();
    }
    check(is_over && there == here);
}

/* A call that has not begun for want of memory says so, wherever the memory was missing. */
static bool echo(hirelock::client &client)
{
    counter ended;
    std::error_code ec;
    try {
        hirelock::run_async(client, hirelock::command({"ECHO", "x"}).key("x"))
            .start([&](outcome<hirelock::reply> &) { ended.add(); }, ec);
    } catch (const std::bad_alloc &) {
        ec = errc::no_memory; /* of the command, the operation or the function */
    }
    check(!ec || ec == errc::no_memory);
    return !ec && ended.wait(1);
}

LAW(async, begins_or_says_that_memory_is_short)
{
    if (!failing_malloc_available())
        return;
    hirelock::client client(law_url());
    check(echo(client));
    check(short_of_memory([&] { return echo(client); }) > 5);
    check(echo(client));
}

/* What a completion has is freed once, when it has run, and also when it never runs. */
LAW(async, frees_its_function)
{
    hirelock::client client(law_url());
    const auto token = std::make_shared<int>(0);
    client.ping_async().start([token](outcome<void> &) {});
    std::error_code ec;
    hirelock::mutex none;
    none.inspect_async().start([token](outcome<hl_lock_info> &) {}, ec);
    check(ec == errc::invalid);
    client.close();
    check(token.use_count() == 1);
}
