/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each call that blocks, in both forms. */
#include "cpp/kit.hpp"

#include <string>
#include <vector>

using hirelock::errc;

/* And a std::string that a C string would cut names nothing. */
LAW(calls, take_names_and_urls_of_both_kinds)
{
    const std::string url = law_url(), name = "stock";
    std::error_code ec;
    hirelock::client client(url);
    hirelock::client second(url, {}, ec);
    check(!ec && second);
    hirelock::mutex lock(client, name), same(second, name, ec);
    check(!ec && lock.name() == "stock" && same.name() == "stock");
    hirelock::semaphore semaphore(client, name + "1");
    hirelock::permits permits(client, name + "2");
    hirelock::latch latch(client, name + "3");
    check(semaphore.name() == "stock1" && permits.name() == "stock2" && latch.name() == "stock3");
    hirelock::mutex cut(client, std::string("st\0ck", 5), ec);
    check(ec == errc::invalid && !cut);
}

LAW(calls, of_a_client)
{
    std::error_code ec = errc::lost;
    hirelock::client client(law_url(), hirelock::client_options().flags(HL_CLIENT_DISPATCH));
    client.ping();
    client.ping(10s, ec);
    client.ping(ec);
    client.ping(std::chrono::duration<double>(10.5));
    client.ping(std::chrono::hours::max());
    check(!ec);
    redis_server_freeze(law_server()); /* so that no answer is there at once */
    client.ping(-1ms, ec);
    check(ec == errc::timed_out);
    client.ping(-2ms, ec);
    check(ec == errc::timed_out);
    client.ping(1us, ec); /* rounded up, as all times are */
    check(ec == errc::timed_out);
    redis_server_thaw(law_server());
    client.ping(10s, ec);
    check(!ec && std::string_view(client.id()).size() > 10);
    check(client.fd() >= 0 && client.fd(ec) == client.fd() && !ec);
    check(client.dispatch() >= 0 && client.dispatch(ec) >= 0 && !ec);
    hirelock::mutex(client, "stock").lock();
    check(client.stats().acquires == 1 && client.stats(ec).acquires == 1 && !ec);
    check(client.stats().failures[HL_CALL_ACQUIRE][HL_REASON_OOM] == 0);
    check(std::string_view(hirelock::name(HL_REASON_OOM)) == "oom");
    check(client.histogram(HL_MEASURE_WAIT).count == 1);
    check(client.histogram(HL_MEASURE_WAIT, ec).count == 1 && !ec);
    (void)client.histogram(static_cast<hl_measure>(0), ec);
    check(ec == errc::invalid);
    check(client.fence_token("data") == 0 && client.fence_token("data", ec) == 0 && !ec);
    client.fence_set(hirelock::fenced_write("data", "1").token(5));
    client.fence_set(hirelock::fenced_write("data", "2").token(6), ec);
    check(!ec && client.fence_token("data") == 6);
    client.close();
    check(!client);
}

LAW(calls, with_options_of_a_client)
{
    hirelock::client_options options;
    options.client_name("shop").name_prefix("shop:").login(nullptr, nullptr);
    options.connect_timeout(9s).request_timeout(9s).outage_timeout(hirelock::forever);
    options.watchdog_timeout(20s).poll(500ms).backoff(10ms, 100ms).busy_poll(0us).connections(2);
    options.min_replicas(HL_REPLICAS_NONE, 100ms);
    const hl_client_options &raw = options.raw();
    check(raw.outage_timeout_ms == -1 && raw.watchdog_timeout_ms == 20000 && raw.poll_ms == 500);
    check(raw.backoff_min_ms == 10 && raw.backoff_max_ms == 100 && raw.connections == 2);
    check(raw.connect_timeout_ms == 9000 && raw.request_timeout_ms == 9000);
    check(raw.min_replicas == HL_REPLICAS_NONE && raw.replicas_timeout_ms == 100);
    hirelock::client client(law_url(), options);
    check(hirelock::mutex(client, "stock").name() == "shop:stock");

    hirelock::client_options more;
    more.sentinel_login("user", "password")
        .tls_authorities("ca.pem", "cas")
        .tls_server_name("host")
        .sentinel_tls_server_name("guard");
    more.tls_certificate("cert.pem", "key.pem").failover_grace(60s, 10s).busy_poll(50us);
    more.password_file("secret").sentinel_password_file("secrets").on_address([](hl_address &) {});
    check(more.raw().failover_grace_ms == 60000 && more.raw().old_master_ms == 10000);
    check(std::string_view(more.raw().tls_ca_dir) == "cas" && more.raw().busy_poll_us == 50);
    check(std::string_view(more.raw().sentinel_password_file) == "secrets");
    check(std::string_view(more.raw().password_file) == "secret");
    check(std::string_view(more.raw().sentinel_tls_server_name) == "guard");
    std::error_code ec;
    const hirelock::client refused(law_url(), more, ec);
    check(ec == errc::invalid && !refused); /* there are no such files */
}

LAW(calls, of_a_lock)
{
    hirelock::client client(law_url());
    std::error_code ec = errc::lost;
    hirelock::mutex lock(client, "stock", ec);
    check(!ec && lock.try_lock());
    check(lock.inspect().mine && lock.inspect(ec).hold_count == 1 && !ec);
    lock.update_lease(1h);
    lock.update_lease(2h, ec);
    check(!ec && lock.validity() > 1h);
    lock.release();
    lock.release(ec);
    check(ec == errc::not_owner);
    lock.force_release(ec);
    check(ec == errc::missing);
    check(code_of([&] { lock.set_and_release(hirelock::fenced_write("data", "1")); }) ==
          errc::not_owner);
    lock.set_and_release(hirelock::fenced_write("data", "1"), ec);
    check(ec == errc::not_owner);
}

LAW(calls, of_a_lock_with_an_owner)
{
    hirelock::client client(law_url());
    std::error_code ec = errc::lost;
    hirelock::owner owner(client), other(client, ec);
    hirelock::mutex lock(client, std::string_view("a\0b", 3),
                         hirelock::lock_options().retain(10ms).min_replicas(0), ec);
    check(!ec && lock.name() == std::string_view("a\0b", 3));
    const auto options = hirelock::acquire_options().owned_by(owner).max_hold(1h).min_hold(1ms);
    lock.acquire(options, ec).dismiss();
    check(!ec && lock.is_held(owner) && !lock.is_held(other));
    lock.update_lease(owner, 1h);
    lock.update_lease(owner, 2h, ec);
    check(!ec);
    lock.set_and_release(owner, hirelock::fenced_write("data", "1"));
    lock.set_and_release(owner, hirelock::fenced_write("data", "1"), ec);
    check(ec == errc::not_owner);
}

LAW(calls, of_other_kinds)
{
    hirelock::client client(law_url());
    std::error_code ec;
    hirelock::mutex fenced(client, "fenced", hirelock::lock_options(HL_LOCK_FENCED));
    fenced.raise_token(1000);
    fenced.raise_token(2000, ec);
    check(!ec && fenced.acquire().token() > 2000);
    for (const hl_lock_kind kind : {HL_LOCK_FAIR, HL_LOCK_SPIN}) {
        auto options = hirelock::lock_options(kind).flags(HL_LOCK_ASYNC_RELEASE);
        if (kind == HL_LOCK_SPIN)
            options.backoff(1ms, 10ms);
        hirelock::mutex lock(client, kind == HL_LOCK_FAIR ? "fair" : "spin", options);
        const std::lock_guard<hirelock::mutex> guard(lock);
        check(lock.is_held());
    }
    hirelock::shared_mutex prices(client, "prices", 0, ec);
    check(!ec && prices.try_lock());
    prices.unlock();
    hirelock::shared_mutex wrong(client, "prices", HL_LOCK_SUBSCRIBE, ec);
    check(ec == errc::invalid);
}

LAW(calls, of_a_multi_lock)
{
    hirelock::client client(law_url());
    std::error_code ec;
    hirelock::mutex left(client, "left"), right(client, "right");
    hirelock::multi_lock both({&right, &left}, {}, ec);
    check(!ec && both.name() == "left,right");
    const std::vector<const hirelock::mutex *> members{&left, &right, &left};
    hirelock::multi_lock three(members.begin(), members.end());
    hirelock::multi_lock same(members.begin(), members.end(), {}, ec);
    check(!ec && same);
    {
        const std::lock_guard<hirelock::mutex> guard(both);
        check(left.is_held() && right.is_held());
    }
    both.lock();
    both.release_each();
    three.lock();
    left.force_release();
    const std::vector<std::error_code> codes = three.release_each(ec);
    check(ec == errc::lost && codes.size() == 3);
    check(codes[0] == errc::lost && !codes[1] && codes[2] == errc::lost);
    const hirelock::multi_lock moved = std::move(three);
    check(three.release_each(ec).empty() && // NOLINT(bugprone-use-after-move)
          ec == errc::invalid);

    const hirelock::owner owner(client);
    both.acquire(hirelock::acquire_options().owned_by(owner)).dismiss();
    both.release_each(owner);
    check(both.release_each(owner, ec).size() == 2 && ec == errc::not_owner);
    hirelock::multi_lock none(std::initializer_list<const hirelock::mutex *>{}, {}, ec);
    check(ec == errc::invalid && !none);
}

/* A multi-lock is a mutex, and nothing stands beside its handle that could stay behind. */
static_assert(sizeof(hirelock::multi_lock) == sizeof(hirelock::mutex));

LAW(calls, of_multi_locks_that_are_swapped_as_mutexes)
{
    hirelock::client client(law_url());
    const hirelock::owner owner(client);
    std::error_code ec;
    hirelock::mutex left(client, "left"), right(client, "right"), other(client, "other");
    hirelock::multi_lock few({&left}), many({&left, &right, &other});
    std::swap(static_cast<hirelock::mutex &>(few), static_cast<hirelock::mutex &>(many));
    few.lock();
    check(few.release_each(ec).size() == 3 && !ec);
    check(many.release_each(owner, ec).size() == 1 && ec == errc::not_owner);
    few.lock();
    few.release_each();

    hirelock::mutex any = std::move(few);
    any.lock();
    check(left.is_held() && right.is_held() && other.is_held());
    any.unlock();
    static_cast<hirelock::mutex &>(many) = std::move(other);
    check(many.release_each(ec).empty() && ec == errc::invalid); /* it is no multi-lock now */
}

LAW(calls, of_a_multi_lock_with_as_many_members_as_may_be)
{
    hirelock::client client(law_url());
    std::vector<hirelock::mutex> locks;
    std::vector<const hirelock::mutex *> members;
    std::error_code ec;
    locks.reserve(101);
    for (int i = 0; i < 101; i++)
        members.push_back(&locks.emplace_back(client, std::to_string(i).c_str()));
    hirelock::multi_lock many(members.begin(), members.end(), {}, ec);
    check(ec == errc::invalid && !many);
    many = hirelock::multi_lock(members.begin(), members.end() - 1);
    many.lock();
    check(many.release_each(ec).size() == 100 && !ec);
}

LAW(calls, of_a_redlock)
{
    std::vector<hirelock::client> clients;
    clients.emplace_back(law_url());
    std::error_code ec;
    hirelock::redlock lock(clients, "stock");
    hirelock::redlock same(clients, "stock", ec);
    check(!ec && lock.name() == "stock");
    hirelock::redlock_options options;
    options.flags(HL_REDLOCK_NESTS | HL_REDLOCK_NO_RESTART_DELAY).vote_timeout(10s);
    options.retry(10ms, 50ms).max_lease(30s);
    hirelock::redlock nests(clients, std::string_view("nests"), options);
    hirelock::redlock again(clients, std::string_view("nests"), options, ec);
    check(!ec);
    const std::lock_guard<hirelock::mutex> outer(nests), inner(again);
    check(nests.hold_count() == 2);
    clients.emplace_back(law_url());
    check(code_of([&] { hirelock::redlock even(clients, "stock"); }) == errc::invalid);
}

LAW(calls, of_permits)
{
    hirelock::client client(law_url());
    std::error_code ec = errc::lost;
    hirelock::permits seats(client, "seats"), same(client, "seats", ec);
    check(!ec && seats.name() == "seats" && same.total() == 0);
    seats.try_set_total(1);
    seats.try_set_total(1, ec);
    check(ec == errc::exists);
    seats.try_set_total(1, 1min, ec);
    check(ec == errc::exists);
    seats.set_total(2, 1min);
    seats.set_total(2);
    seats.set_total(3, ec);
    seats.add(1);
    seats.add(1, ec);
    check(!ec && seats.total() == 5 && seats.total(ec) == 5 && seats.available(ec) == 5);

    hirelock::permit one = seats.acquire(), two = seats.acquire(ec);
    hirelock::permit three = seats.acquire(hirelock::acquire_options().lease(1h));
    check(one.is_held() && two.validity() > 0ms && seats.is_held(three.id()));
    check(seats.lease_left(three.id()) > 30min && seats.lease_left(three.id(), ec) <= 1h);
    seats.update_lease(three.id(), 2h);
    seats.update_lease(three.id(), 3h, ec);
    check(!ec && seats.validity(three.id()) > 2h);
    const hirelock::permit four = seats.try_acquire(), five = seats.try_acquire_for(10s);
    check(four && five && seats.acquired() == 5 && seats.acquired(ec) == 5);
    check(!seats.try_acquire() && !seats.try_acquire(ec) && ec == errc::busy);
    check(!seats.try_acquire_for(1ms) && !seats.try_acquire_for(1ms, ec) && ec == errc::timed_out);
    check(!seats.try_acquire_until(std::chrono::system_clock::now() + 1ms));
    check(!seats.acquire(hirelock::acquire_options().wait(0s), ec) && ec == errc::busy);

    one.release();
    one.release(ec);
    check(ec == errc::invalid && !one);
    seats.release(two.dismiss());
    seats.release(two.id(), ec);
    check(ec == errc::missing && seats.available() == 2);
    three = std::move(two);
    check(!three && seats.try_acquire_until(std::chrono::steady_clock::time_point::max()));
}

LAW(calls, of_several_permits)
{
    hirelock::client client(law_url());
    std::error_code ec;
    hirelock::permits seats(client, "seats");
    seats.set_total(4);
    const std::vector<hl_permit> ids = seats.acquire_many(2);
    const std::vector<hl_permit> more = seats.acquire_many(2, {}, ec);
    check(!ec && ids.size() == 2 && more.size() == 2 && seats.available() == 0);
    seats.release_many(ids);
    seats.release_many(ids, ec);
    check(ec == errc::missing);
    check(seats.acquire_many(1000000000, {}, ec).empty() && ec == errc::invalid);
    {
        const hirelock::permit guard = seats.acquire();
        check(seats.available() == 1);
    }
    check(seats.available() == 2);
    seats.remove();
    seats.remove(ec);
    check(ec == errc::missing);
}

LAW(calls, of_a_semaphore)
{
    hirelock::client client(law_url());
    std::error_code ec = errc::lost;
    hirelock::semaphore doors(client, "doors"), same(client, "doors", ec);
    check(!ec && doors.name() == "doors");
    doors.release_if_exists(1, ec);
    check(ec == errc::missing);
    check(code_of([&] { doors.release_if_exists(1); }) == errc::missing);
    doors.try_set_permits(3);
    doors.try_set_permits(3, 1h, ec);
    check(ec == errc::exists);
    doors.acquire(1);
    doors.acquire(1, ec);
    doors.acquire(1, hirelock::wait_options().wait(10s));
    check(!ec && doors.available() == 0 && doors.available(ec) == 0);
    check(!doors.try_acquire(1) && !doors.try_acquire(1, ec) && ec == errc::busy);
    check(!doors.try_acquire_for(1, 1ms) && !doors.try_acquire_for(1, 1ms, ec));
    check(ec == errc::timed_out);
    check(!doors.try_acquire_until(1, std::chrono::system_clock::now() + 1ms));
    doors.acquire(1, hirelock::wait_options().wait(0s), ec);
    check(ec == errc::busy);
    doors.release(2);
    doors.release(1, ec);
    doors.add_permits(2);
    doors.add_permits(-1, ec);
    check(!ec && doors.drain() == 4 && doors.drain(ec) == 0 && !ec);
}

/* 0 is a semaphore that stays, so no time is rounded down to it. */
LAW(calls, give_a_semaphore_a_time_of_any_unit)
{
    hirelock::client client(law_url());
    std::error_code ec;
    hirelock::semaphore stays(client, "stays"), long_one(client, "long");
    hirelock::semaphore(client, "short").try_set_permits(1, 1us);
    check(redis_int(law_server(), "PTTL short") != -1);
    long_one.try_set_permits(1, std::chrono::duration<double, std::ratio<3600>>(1.5), ec);
    check(!ec && redis_int(law_server(), "PTTL long") > 3600000);
    stays.try_set_permits(1, std::chrono::hours::max(), ec);
    check(ec == errc::invalid); /* longer than 10^11 ms */
    stays.try_set_permits(1, ec);
    check(!ec && redis_int(law_server(), "PTTL stays") == -1);
}

LAW(calls, of_a_latch)
{
    hirelock::client client(law_url());
    std::error_code ec = errc::lost;
    hirelock::latch gate(client, "gate"), same(client, "gate", ec);
    check(!ec && gate.name() == "gate" && gate.try_wait() && gate.try_wait(ec));
    gate.try_set_count(2);
    gate.try_set_count(2, ec);
    check(ec == errc::exists && gate.count() == 2 && gate.count(ec) == 2);
    check(!gate.try_wait() && !gate.wait_for(1ms) && !gate.wait_for(1ms, ec));
    check(ec == errc::timed_out);
    check(!gate.wait_until(std::chrono::steady_clock::now() + 1ms));
    gate.wait(hirelock::wait_options().wait(0s), ec);
    check(ec == errc::busy);
    gate.count_down();
    gate.count_down(ec);
    gate.wait();
    gate.wait(ec);
    gate.wait(hirelock::wait_options());
    check(!ec);
    gate.remove(ec);
    check(ec == errc::missing);
    gate.try_set_count(1);
    gate.remove();
}

LAW(calls, are_cancelled)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    std::error_code ec;
    hirelock::cancel cancel(ec);
    const std::lock_guard<hirelock::mutex> guard(lock);
    {
        const helper other([&] {
            const auto options = hirelock::acquire_options().cancel_by(cancel);
            check(code_of([&] { (void)lock.acquire(options); }) == std::errc::operation_canceled);
            check(!lock.acquire(options, ec) && ec == errc::canceled);
        });
        check(wait_for_waiters(client, 1));
        cancel.fire();
    }
    hirelock::latch gate(client, "gate");
    gate.try_set_count(1);
    check(code_of([&] { gate.wait(hirelock::wait_options().cancel_by(cancel)); }) ==
          errc::canceled);
}

LAW(calls, of_commands)
{
    std::error_code ec = errc::lost;
    hirelock::client client(law_url());
    const std::string_view bytes("a\0b", 3);
    check(hirelock::run(client, hirelock::command({"SET", "text", bytes}).key("text")).text ==
          "OK");
    const auto get = hirelock::command({"GET", "text"}).key("text").reads().timeout(10s);
    const hirelock::reply reply = hirelock::run(client, get, ec);
    check(!ec && reply.kind == HL_REPLY_TEXT && reply.text == bytes);
    const hirelock::command copy = get;
    check(hirelock::run(client, copy).text == bytes);
    const hirelock::command list({"MGET", "text", "no"});
    const hirelock::reply both = hirelock::run(client, list);
    check(both.elements.size() == 2 && both.elements[0].text == bytes);
    check(both.elements[1].kind == HL_REPLY_NIL);
    hirelock::run(client, hirelock::command({"INFO"}).node("nowhere:1"), ec);
    check(ec == errc::missing);
    check(code_of([&] { hirelock::run(client, hirelock::command({"MULTI"})); }) == errc::invalid);
}

LAW(calls, of_metrics)
{
    std::error_code ec = errc::lost;
    const hirelock::client orders(law_url()), stock(law_url());
    hirelock::metrics metrics;
    metrics.add(orders, {{"client", "orders"}}).add(stock, {{"client", "stock"}});
    const std::string text = metrics.text();
    check(text.find("hirelock_acquires_total{client=\"stock\"} 0\n") != std::string::npos);
    check(text.back() == '\n' && metrics.text(ec).size() >= 1000 && !ec);
    metrics.add(stock, {{"le", "1"}});
    check(metrics.text(ec).empty() && ec == errc::invalid);
    check(code_of([&] { metrics.text(); }) == errc::invalid);
}
