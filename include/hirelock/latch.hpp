/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The count-down latch in C++ (latch.h). */
#ifndef HIRELOCK_LATCH_HPP
#define HIRELOCK_LATCH_HPP

#include <hirelock/client.hpp>
#include <hirelock/latch.h>

namespace hirelock
{

class latch : public detail::handle<hl_latch, hl_latch_free>
{
  public:
    latch() noexcept = default;
    using handle::handle;

    /* No I/O, and closes nothing. */
    latch(client &client, detail::text name)
    {
        *this = latch(detail::ask<hl_latch *, hl_latch_new>(client.get(), name.get()));
    }

    latch(client &client, detail::text name, std::error_code &ec) noexcept
    {
        *this = latch(detail::ask_ec<hl_latch *, hl_latch_new>(ec, client.get(), name.get()));
    }

    /* As it stands in Redis, with the client's prefix; empty for an empty handle. */
    std::string_view name() const noexcept
    {
        std::size_t length = 0;
        const char *text = hl_latch_name(get(), &length);
        return text != nullptr ? std::string_view(text, length) : std::string_view();
    }

    /* Closes the latch; errc::exists: it was closed before, and its count stays. */

    void try_set_count(std::int64_t count)
    {
        detail::run<hl_latch_try_set_count>(get(), count);
    }

    void try_set_count(std::int64_t count, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_latch_try_set_count>(ec, get(), count);
    }

    void count_down()
    {
        detail::run<hl_latch_count_down>(get());
    }

    void count_down(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_latch_count_down>(ec, get());
    }

    std::int64_t count()
    {
        return detail::ask<std::int64_t, hl_latch_count>(get());
    }

    std::int64_t count(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_latch_count>(ec, get());
    }

    /* hl_latch_delete: opens the latch, whatever its count. errc::missing: it was open. */

    void remove()
    {
        detail::run<hl_latch_delete>(get());
    }

    void remove(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_latch_delete>(ec, get());
    }

    /* Waits until it is open. */

    void wait()
    {
        detail::run<hl_latch_await>(get());
    }

    void wait(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_latch_await>(ec, get());
    }

    void wait(const wait_options &options)
    {
        detail::run<hl_latch_await_with>(get(), &options.raw());
    }

    void wait(const wait_options &options, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_latch_await_with>(ec, get(), &options.raw());
    }

    /* False when it is closed and the time is over; any other failure is thrown, or set. */

    bool try_wait()
    {
        return detail::got<hl_latch_await_for>(get(), HL_NO_WAIT);
    }

    bool try_wait(std::error_code &ec) noexcept
    {
        return detail::got_ec<hl_latch_await_for>(ec, get(), HL_NO_WAIT);
    }

    template <class Rep, class Period> bool wait_for(std::chrono::duration<Rep, Period> wait)
    {
        return detail::got<hl_latch_await_for>(get(), detail::wait_ms(wait));
    }

    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> wait, std::error_code &ec)
    {
        return detail::got_ec<hl_latch_await_for>(ec, get(), detail::wait_ms(wait));
    }

    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        return detail::retry_until(
            point, [this](std::int64_t ms) { return detail::got<hl_latch_await_for>(get(), ms); });
    }

    /* Calls that do not block (async.hpp). */

    auto try_set_count_async(std::int64_t count)
    {
        return detail::later<void, hl_latch_try_set_count_async>(get(), count);
    }

    auto count_down_async()
    {
        return detail::later<void, hl_latch_count_down_async>(get());
    }

    auto count_async()
    {
        return detail::later<std::int64_t, hl_latch_count_async>(get());
    }

    auto remove_async()
    {
        return detail::later<void, hl_latch_delete_async>(get());
    }

    auto wait_async(const wait_options &options = {})
    {
        return detail::later<void, hl_latch_await_async>(get(), options.raw());
    }
};

} // namespace hirelock

#endif
