/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The semaphore in C++ (semaphore.h): a number of permits without leases. */
#ifndef HIRELOCK_SEMAPHORE_HPP
#define HIRELOCK_SEMAPHORE_HPP

#include <hirelock/client.hpp>
#include <hirelock/semaphore.h>

namespace hirelock
{

class semaphore : public detail::handle<hl_semaphore, hl_semaphore_free>
{
  public:
    semaphore() noexcept = default;
    using handle::handle;

    /* No I/O, and creates nothing in Redis. */
    semaphore(client &client, detail::text name)
    {
        *this = semaphore(detail::ask<hl_semaphore *, hl_semaphore_new>(client.get(), name.get()));
    }

    semaphore(client &client, detail::text name, std::error_code &ec) noexcept
    {
        *this = semaphore(
            detail::ask_ec<hl_semaphore *, hl_semaphore_new>(ec, client.get(), name.get()));
    }

    /* As it stands in Redis, with the client's prefix; empty for an empty handle. */
    std::string_view name() const noexcept
    {
        std::size_t length = 0;
        const char *text = hl_semaphore_name(get(), &length);
        return text != nullptr ? std::string_view(text, length) : std::string_view();
    }

    /* Takes permits, all or none. */

    void acquire(std::int64_t permits)
    {
        detail::run<hl_semaphore_acquire>(get(), permits);
    }

    void acquire(std::int64_t permits, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_acquire>(ec, get(), permits);
    }

    void acquire(std::int64_t permits, const wait_options &options)
    {
        detail::run<hl_semaphore_acquire_with>(get(), permits, &options.raw());
    }

    void acquire(std::int64_t permits, const wait_options &options, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_acquire_with>(ec, get(), permits, &options.raw());
    }

    /* False when there are too few, or the time is over; any other failure is thrown, or set. */

    bool try_acquire(std::int64_t permits)
    {
        return detail::got<hl_semaphore_try_acquire>(get(), permits);
    }

    bool try_acquire(std::int64_t permits, std::error_code &ec) noexcept
    {
        return detail::got_ec<hl_semaphore_try_acquire>(ec, get(), permits);
    }

    template <class Rep, class Period>
    bool try_acquire_for(std::int64_t permits, std::chrono::duration<Rep, Period> wait)
    {
        return detail::got<hl_semaphore_acquire_for>(get(), permits, detail::wait_ms(wait));
    }

    template <class Rep, class Period>
    bool try_acquire_for(std::int64_t permits, std::chrono::duration<Rep, Period> wait,
                         std::error_code &ec)
    {
        return detail::got_ec<hl_semaphore_acquire_for>(ec, get(), permits, detail::wait_ms(wait));
    }

    template <class Clock, class Duration>
    bool try_acquire_until(std::int64_t permits,
                           const std::chrono::time_point<Clock, Duration> &point)
    {
        return detail::retry_until(point, [this, permits](std::int64_t ms) {
            return detail::got<hl_semaphore_acquire_for>(get(), permits, ms);
        });
    }

    /* Gives permits back; creates the semaphore if there is none. */

    void release(std::int64_t permits)
    {
        detail::run<hl_semaphore_release>(get(), permits);
    }

    void release(std::int64_t permits, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_release>(ec, get(), permits);
    }

    void release_if_exists(std::int64_t permits)
    {
        detail::run<hl_semaphore_release_if_exists>(get(), permits);
    }

    void release_if_exists(std::int64_t permits, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_release_if_exists>(ec, get(), permits);
    }

    /* errc::exists: the semaphore is there already. Without a ttl, or with 0, it stays for ever. */

    void try_set_permits(std::int64_t permits)
    {
        detail::run<hl_semaphore_try_set_permits>(get(), permits, 0);
    }

    void try_set_permits(std::int64_t permits, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_try_set_permits>(ec, get(), permits, 0);
    }

    template <class Rep, class Period>
    void try_set_permits(std::int64_t permits, std::chrono::duration<Rep, Period> ttl)
    {
        detail::run<hl_semaphore_try_set_permits>(get(), permits, detail::span_ms(ttl));
    }

    template <class Rep, class Period>
    void try_set_permits(std::int64_t permits, std::chrono::duration<Rep, Period> ttl,
                         std::error_code &ec)
    {
        detail::run_ec<hl_semaphore_try_set_permits>(ec, get(), permits, detail::span_ms(ttl));
    }

    /* Adds permits, or with a negative number removes them. */

    void add_permits(std::int64_t permits)
    {
        detail::run<hl_semaphore_add_permits>(get(), permits);
    }

    void add_permits(std::int64_t permits, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_semaphore_add_permits>(ec, get(), permits);
    }

    /* Takes all that are available, and returns their number. */

    std::int64_t drain()
    {
        return detail::ask<std::int64_t, hl_semaphore_drain>(get());
    }

    std::int64_t drain(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_semaphore_drain>(ec, get());
    }

    std::int64_t available()
    {
        return detail::ask<std::int64_t, hl_semaphore_available>(get());
    }

    std::int64_t available(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_semaphore_available>(ec, get());
    }

    /* Calls that do not block (async.hpp). */

    auto acquire_async(std::int64_t permits, const wait_options &options = {})
    {
        return detail::later<void, hl_semaphore_acquire_async>(get(), permits, options.raw());
    }

    auto release_async(std::int64_t permits)
    {
        return detail::later<void, hl_semaphore_release_async>(get(), permits);
    }

    auto release_if_exists_async(std::int64_t permits)
    {
        return detail::later<void, hl_semaphore_release_if_exists_async>(get(), permits);
    }

    auto try_set_permits_async(std::int64_t permits)
    {
        return detail::later<void, hl_semaphore_try_set_permits_async>(get(), permits, 0);
    }

    template <class Rep, class Period>
    auto try_set_permits_async(std::int64_t permits, std::chrono::duration<Rep, Period> ttl)
    {
        return detail::later<void, hl_semaphore_try_set_permits_async>(get(), permits,
                                                                       detail::span_ms(ttl));
    }

    auto add_permits_async(std::int64_t permits)
    {
        return detail::later<void, hl_semaphore_add_permits_async>(get(), permits);
    }

    auto drain_async()
    {
        return detail::later<std::int64_t, hl_semaphore_drain_async>(get());
    }

    auto available_async()
    {
        return detail::later<std::int64_t, hl_semaphore_available_async>(get());
    }
};

} // namespace hirelock

#endif
