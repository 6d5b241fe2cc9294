/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The locks beneath the guards of the standard library, and times of any unit and clock. */
#include "cpp/kit.hpp"

#include <atomic>
#include <shared_mutex>
#include <type_traits>

/* A handle is moved, never copied. */
template <class T>
constexpr bool is_handle =
    std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T>;
static_assert(is_handle<hirelock::client> && is_handle<hirelock::mutex> &&
              is_handle<hirelock::shared_mutex> && is_handle<hirelock::multi_lock> &&
              is_handle<hirelock::redlock> && is_handle<hirelock::permits> &&
              is_handle<hirelock::permit> && is_handle<hirelock::semaphore> &&
              is_handle<hirelock::latch> && is_handle<hirelock::owner> &&
              is_handle<hirelock::cancel> && is_handle<hirelock::hold>);
static_assert(noexcept(std::declval<hirelock::mutex &>().unlock()));
static_assert(noexcept(std::declval<hirelock::shared_mutex &>().unlock_shared()));

/* Rounded up to milliseconds; no wait below zero; without end when it is longer than 10^11. */
static_assert(hirelock::detail::wait_ms(1ns) == 1 && hirelock::detail::wait_ms(1001us) == 2);
static_assert(hirelock::detail::wait_ms(0s) == 0 && hirelock::detail::wait_ms(-5s) == 0);
static_assert(hirelock::detail::wait_ms(std::chrono::duration<double>(0.0015)) == 2);
static_assert(hirelock::detail::wait_ms(hirelock::forever) == HL_WAIT_FOREVER);
static_assert(hirelock::detail::wait_ms(std::chrono::hours::max()) == HL_WAIT_FOREVER);
static_assert(hirelock::detail::span_ms(-500us) == -1 && hirelock::detail::span_ms(2h) == 7200000);
static_assert(hirelock::detail::span_ms(std::chrono::hours::max()) == 100000000001);
static_assert(hirelock::detail::span_ms(std::chrono::hours::min()) == -100000000001);

LAW(lockable, scoped_lock_takes_two_in_any_order)
{
    hirelock::client client(law_url());
    hirelock::mutex left(client, "left"), right(client, "right");
    int balance = 0; /* unprotected but for the locks */
    {
        const helper other([&] {
            for (int i = 0; i < 100; i++) {
                const std::scoped_lock both(right, left);
                balance++;
            }
        });
        for (int i = 0; i < 100; i++) {
            const std::scoped_lock both(left, right);
            balance++;
        }
    }
    check(balance == 200);
    check(!left.is_held() && !right.is_held());
    check(redis_int(law_server(), "EXISTS left right") == 0);
}

LAW(lockable, unique_lock_waits_for_a_time)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const std::lock_guard<hirelock::mutex> guard(lock);
    const helper other([&] {
        const auto begin = std::chrono::steady_clock::now();
        check(!std::unique_lock<hirelock::mutex>(lock, std::try_to_lock));
        check(!std::unique_lock<hirelock::mutex>(lock, 20ms));
        check(!std::unique_lock<hirelock::mutex>(lock, -1s));
        check(!std::unique_lock<hirelock::mutex>(lock, begin + 40ms));
        check(std::chrono::steady_clock::now() >= begin + 40ms);
        check(!std::unique_lock<hirelock::mutex>(lock, std::chrono::system_clock::now() + 10ms));
        check(!lock.try_lock_until(std::chrono::steady_clock::time_point::min()));
    });
    check(lock.hold_count() == 1);
}

LAW(lockable, a_wait_ends_when_the_lock_is_free)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    std::unique_lock<hirelock::mutex> guard(lock);
    std::atomic<int> got{0};
    const helper first([&] {
        got += std::unique_lock<hirelock::mutex>(lock, std::chrono::hours::max()).owns_lock();
    });
    const helper second([&] {
        const auto end = std::chrono::steady_clock::time_point::max();
        got += std::unique_lock<hirelock::mutex>(lock, end).owns_lock();
    });
    check(wait_for_waiters(client, 2));
    check(got == 0);
    guard.unlock();
    guard.lock(); /* behind both */
    check(got == 2);
}

/* A clock that says twice that no time has passed. */
struct slow_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<slow_clock>;
    static constexpr bool is_steady = false;

    static time_point now()
    {
        asked++;
        return time_point(asked < 6 ? 0ms : 5ms);
    }

    static inline int asked = 0;
};

LAW(lockable, a_time_point_of_any_clock_is_kept)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const std::lock_guard<hirelock::mutex> guard(lock);
    const helper other([&] {
        check(!lock.try_lock_until(slow_clock::time_point(5ms)));
        check(slow_clock::asked >= 6);
    });
}

/* In no unit of its clock can be told how far it is. */
LAW(lockable, a_time_point_may_be_as_late_as_its_clock_has_them)
{
    using std::chrono::time_point;
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    std::unique_lock<hirelock::mutex> guard(lock);
    counter got;
    const auto take = [&](auto point) {
        return std::make_unique<helper>([&lock, &got, point] {
            check(lock.try_lock_until(point));
            got.add();
            lock.unlock();
        });
    };
    const auto first = take(time_point<std::chrono::system_clock, std::chrono::seconds>::max());
    const auto second = take(time_point<std::chrono::steady_clock, std::chrono::hours>::max());
    const auto third = take(time_point<std::chrono::system_clock, std::chrono::seconds>(
        std::chrono::seconds(10413792000))); /* the year 2300 */
    const auto fourth = take(std::chrono::steady_clock::time_point::max());
    check(wait_for_waiters(client, 4));
    check(got.count() == 0);
    guard.unlock();
    check(got.wait(4));
}

LAW(lockable, shared_lock_admits_several_readers)
{
    hirelock::client client(law_url());
    hirelock::shared_mutex prices(client, "prices", HL_LOCK_PREFER_WRITERS);
    counter readers;
    {
        const auto read = [&] {
            const std::shared_lock<hirelock::shared_mutex> guard(prices);
            readers.add();
            check(readers.wait(3)); /* all three are inside at one time */
        };
        const helper one(read), two(read), three(read);
    }
    const std::unique_lock<hirelock::shared_mutex> writer(prices);
    const helper late([&] {
        const auto soon = std::chrono::steady_clock::now() + 10ms;
        check(!prices.try_lock_shared() && !prices.try_lock_shared_for(10ms));
        check(!prices.try_lock_shared_until(soon) && !prices.try_lock());
        check(!prices.try_lock_for(10ms) && !prices.try_lock_until(soon));
    });
    check(prices.writer().is_held() && !prices.reader().is_held());
    check(prices.try_lock_shared()); /* the writer may read as well */
    prices.unlock_shared();
}

LAW(lockable, a_recursive_lock_and_one_that_is_not)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::mutex flat(client, "flat",
                         hirelock::lock_options(HL_LOCK_REENTRANT, HL_LOCK_NON_REENTRANT));
    const std::lock_guard<hirelock::mutex> outer(lock), once(flat);
    {
        const std::lock_guard<hirelock::mutex> inner(lock);
        check(lock.hold_count() == 2);
    }
    check(lock.hold_count() == 1);
    check(code_of([&] { flat.lock(); }) == std::errc::resource_deadlock_would_occur);
}

LAW(lockable, a_guard_of_a_lost_hold_ends_without_a_throw)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    {
        const std::unique_lock<hirelock::mutex> guard(lock);
        lock.force_release();
        check(guard.owns_lock() && !lock.is_held());
    }
    check(code_of([&] { lock.release(); }) == hirelock::errc::not_owner);
    lock.unlock(); /* of nothing: it is no error that could be reported */
}
