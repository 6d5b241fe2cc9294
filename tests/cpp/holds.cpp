/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Holds: results of releases, moves, losses, and owners. */
#include "cpp/kit.hpp"

LAW(hold, is_released_by_its_end)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    {
        const hirelock::hold hold = lock.acquire();
        check(hold && hold.is_held() && hold.hold_count() == 1 && hold.validity() > 0ms);
        check(hold.token() == 0 && redis_int(law_server(), "EXISTS stock") == 1);
    }
    check(redis_int(law_server(), "EXISTS stock") == 0);
}

LAW(hold, tells_the_result_of_its_release)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    std::error_code ec = hirelock::errc::lost;

    hirelock::hold hold = lock.acquire();
    hold.release();
    check(!hold && !hold.is_held());
    check(code_of([&] { hold.release(); }) == std::errc::invalid_argument);

    hold = lock.acquire(ec);
    check(!ec && hold);
    lock.force_release();
    check(hold && !hold.is_held() && hold.validity() == 0ms);
    hold.release(ec);
    check(ec == hirelock::errc::lost && hirelock::is_outcome(ec) && !hold);
}

LAW(hold, is_moved_and_released_once)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock"), other(client, "other");
    hirelock::hold first = lock.acquire();
    hirelock::hold second = std::move(first);
    check(!first && second.is_held());
    hirelock::hold third = other.acquire();
    third = std::move(second); /* releases `other` */
    check(!second && third.is_held() && !other.is_held() && lock.hold_count() == 1);
    hirelock::hold &same = third;
    third = std::move(same);
    check(third.is_held());
    third = hirelock::hold();
    check(!third && !lock.is_held() && client.stats().releases == 2);
}

LAW(hold, of_an_owner_ends_in_another_thread)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::hold hold = lock.acquire(hirelock::owner(client));
    check(hold.is_held() && !lock.is_held());
    {
        const helper other([mine = std::move(hold)]() mutable {
            check(mine.is_held());
            mine.release();
        });
    }
    std::error_code ec;
    hirelock::owner owner(client, ec);
    check(!ec && lock.acquire(std::move(owner), {}, ec) && !ec);
    check(!owner);
    check(redis_int(law_server(), "EXISTS stock") == 0);
}

LAW(hold, of_a_borrowed_owner)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::owner owner(client);
    std::error_code ec;
    hirelock::hold hold = lock.acquire(hirelock::acquire_options().owned_by(owner).wait(10s));
    check(hold.is_held() && lock.is_held(owner) && !lock.is_held());
    check(lock.hold_count(owner) == 1 && lock.validity(owner) > 0ms && lock.token(owner) == 0);
    hold.dismiss();
    check(!hold && lock.is_held(owner));
    lock.release(owner);
    lock.release(owner, ec);
    check(ec == hirelock::errc::not_owner);
}

LAW(hold, is_empty_when_the_lock_is_busy)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const hirelock::hold hold = lock.acquire();
    const helper other([&] {
        std::error_code ec;
        check(!lock.try_acquire() && !lock.try_acquire_for(10ms));
        check(!lock.try_acquire_until(std::chrono::steady_clock::now() + 10ms));
        check(!lock.try_acquire(ec) && ec == std::errc::device_or_resource_busy);
        check(!lock.try_acquire_for(10ms, ec) && ec == std::errc::timed_out);
        check(!lock.acquire(hirelock::acquire_options().wait(0s), ec) &&
              ec == hirelock::errc::busy);
    });
}

LAW(hold, has_a_token_of_a_fenced_lock)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock", hirelock::lock_options(HL_LOCK_FENCED));
    std::error_code ec;
    hirelock::hold hold = lock.acquire();
    const std::uint64_t first = hold.token();
    check(first > 0 && lock.token() == first);
    client.fence_set(hirelock::fenced_write("price", "10").token(first).expire(1h));
    hold.release();

    hold = lock.acquire();
    check(hold.token() > first);
    hold.set_and_release(hirelock::fenced_write("price", "11").remember(1h));
    check(!hold && client.fence_token("price") > first);
    client.fence_set(hirelock::fenced_write("price", "12").token(first), ec);
    check(ec == hirelock::errc::fenced);
    check(std::string_view(redis_str(law_server(), "GET price")) == "11");

    hold = lock.acquire();
    hold.set_and_release(hirelock::fenced_write("", "13"), ec);
    check(ec == hirelock::errc::invalid && hold.is_held()); /* nothing was changed */
}

LAW(hold, gets_a_new_lease)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    std::error_code ec;
    hirelock::hold hold = lock.acquire(hirelock::acquire_options().lease(1h));
    check(hold.validity() > 30min);
    hold.update_lease(2h, ec);
    check(!ec && hold.validity() > 1h);
    check(code_of([&] { hold.update_lease(-1s); }) == hirelock::errc::invalid);
}
