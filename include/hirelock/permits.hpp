/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Permits with leases in C++ (permits.h). hirelock::permits is the semaphore, and hirelock::permit
 * one permit that is held: its destructor gives it back, and drops the result, as that of a hold
 * does (hold.hpp). A permit that is to come back by its lease, as for a rate limit, is dismissed.
 */
#ifndef HIRELOCK_PERMITS_HPP
#define HIRELOCK_PERMITS_HPP

#include <hirelock/hold.hpp>
#include <hirelock/permits.h>

namespace hirelock
{

/* The handle of the semaphore must outlive its permits. */
class [[nodiscard]] permit
{
  public:
    permit() noexcept = default;

    permit(hl_permits *semaphore, const hl_permit &id, std::adopt_lock_t) noexcept
        : semaphore_(semaphore), id_(id)
    {
    }

    permit(permit &&other) noexcept
        : semaphore_(std::exchange(other.semaphore_, nullptr)), id_(other.id_)
    {
    }

    permit &operator=(permit &&other) noexcept
    {
        permit taken(std::move(other));
        std::swap(semaphore_, taken.semaphore_);
        std::swap(id_, taken.id_);
        return *this;
    }

    permit(const permit &) = delete;
    permit &operator=(const permit &) = delete;

    ~permit()
    {
        if (semaphore_ != nullptr)
            detail::release_quietly(
                [this] { return hl_permits_release(semaphore_, &id_, nullptr); });
    }

    explicit operator bool() const noexcept
    {
        return semaphore_ != nullptr;
    }

    /* The id stays known after the release. */
    const hl_permit &id() const noexcept
    {
        return id_;
    }

    /* hl_permits_release. The permit is empty afterwards, but after errc::no_memory, which leaves
     * it as it was. */
    void release()
    {
        hl_error reason = HL_ERROR_INIT;
        const int code = end(hl_permits_release(semaphore_, &id_, &reason));
        if (code < 0)
            throw error(code, reason);
    }

    void release(std::error_code &ec) noexcept
    {
        detail::set(ec, end(hl_permits_release(semaphore_, &id_, nullptr)));
    }

    /* The permit stays out, and this object forgets it. */
    hl_permit dismiss() noexcept
    {
        semaphore_ = nullptr;
        return id_;
    }

    bool is_held() const noexcept
    {
        return hl_permits_is_held(semaphore_, &id_);
    }

    std::chrono::milliseconds validity() const noexcept
    {
        return detail::to_ms(hl_permits_validity_ms(semaphore_, &id_));
    }

  private:
    int end(int code) noexcept
    {
        if (!detail::is_unchanged(code))
            semaphore_ = nullptr;
        return code;
    }

    hl_permits *semaphore_ = nullptr;
    hl_permit id_{};
};

class permits : public detail::handle<hl_permits, hl_permits_free>
{
  public:
    permits() noexcept = default;
    using handle::handle;

    /* No I/O, and creates nothing in Redis. */
    permits(client &client, detail::text name)
    {
        *this = permits(detail::ask<hl_permits *, hl_permits_new>(client.get(), name.get()));
    }

    permits(client &client, detail::text name, std::error_code &ec) noexcept
    {
        *this = permits(detail::ask_ec<hl_permits *, hl_permits_new>(ec, client.get(), name.get()));
    }

    /* As it stands in Redis, with the client's prefix; empty for an empty handle. */
    std::string_view name() const noexcept
    {
        std::size_t length = 0;
        const char *text = hl_permits_name(get(), &length);
        return text != nullptr ? std::string_view(text, length) : std::string_view();
    }

    permit acquire()
    {
        return held(detail::ask<hl_permit, hl_permits_acquire>(get()));
    }

    permit acquire(std::error_code &ec) noexcept
    {
        const hl_permit id = detail::ask_ec<hl_permit, hl_permits_acquire>(ec, get());
        return ec ? permit() : held(id);
    }

    permit acquire(const acquire_options &options)
    {
        return held(detail::ask<hl_permit, hl_permits_acquire_with>(get(), &options.raw()));
    }

    permit acquire(const acquire_options &options, std::error_code &ec) noexcept
    {
        const hl_permit id =
            detail::ask_ec<hl_permit, hl_permits_acquire_with>(ec, get(), &options.raw());
        return ec ? permit() : held(id);
    }

    /* Empty when none is available, or the time is over; any other failure is thrown. With a code
     * these are set as well. */

    permit try_acquire()
    {
        hl_permit id = {};
        return detail::got<hl_permits_try_acquire>(get(), &id) ? held(id) : permit();
    }

    permit try_acquire(std::error_code &ec) noexcept
    {
        const hl_permit id = detail::ask_ec<hl_permit, hl_permits_try_acquire>(ec, get());
        return ec ? permit() : held(id);
    }

    template <class Rep, class Period>
    permit try_acquire_for(std::chrono::duration<Rep, Period> wait)
    {
        hl_permit id = {};
        return detail::got<hl_permits_acquire_for>(get(), detail::wait_ms(wait), &id) ? held(id)
                                                                                      : permit();
    }

    template <class Rep, class Period>
    permit try_acquire_for(std::chrono::duration<Rep, Period> wait, std::error_code &ec)
    {
        const hl_permit id =
            detail::ask_ec<hl_permit, hl_permits_acquire_for>(ec, get(), detail::wait_ms(wait));
        return ec ? permit() : held(id);
    }

    template <class Clock, class Duration>
    permit try_acquire_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        hl_permit id = {};
        const auto acquire = [this, &id](std::int64_t ms) {
            return detail::got<hl_permits_acquire_for>(get(), ms, &id);
        };
        return detail::retry_until(point, acquire) ? held(id) : permit();
    }

    /* Several, all or none, by their ids; release_many() gives them back. */

    std::vector<hl_permit> acquire_many(std::size_t count, const acquire_options &options = {})
    {
        std::vector<hl_permit> ids(room(count));
        detail::run<hl_permits_acquire_many>(get(), count, &options.raw(), ids.data());
        return ids;
    }

    std::vector<hl_permit> acquire_many(std::size_t count, const acquire_options &options,
                                        std::error_code &ec)
    {
        std::vector<hl_permit> ids(room(count));
        detail::run_ec<hl_permits_acquire_many>(ec, get(), count, &options.raw(), ids.data());
        if (ec)
            ids.clear();
        return ids;
    }

    void release_many(const std::vector<hl_permit> &ids)
    {
        detail::run<hl_permits_release_many>(get(), ids.data(), ids.size());
    }

    void release_many(const std::vector<hl_permit> &ids, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_release_many>(ec, get(), ids.data(), ids.size());
    }

    /* By its id: a permit of any client. */

    void release(const hl_permit &id)
    {
        detail::run<hl_permits_release>(get(), &id);
    }

    void release(const hl_permit &id, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_release>(ec, get(), &id);
    }

    template <class Rep, class Period>
    void update_lease(const hl_permit &id, std::chrono::duration<Rep, Period> lease)
    {
        detail::run<hl_permits_update_lease>(get(), &id, detail::span_ms(lease));
    }

    template <class Rep, class Period>
    void update_lease(const hl_permit &id, std::chrono::duration<Rep, Period> lease,
                      std::error_code &ec)
    {
        detail::run_ec<hl_permits_update_lease>(ec, get(), &id, detail::span_ms(lease));
    }

    bool is_held(const hl_permit &id) const noexcept
    {
        return hl_permits_is_held(get(), &id);
    }

    std::chrono::milliseconds validity(const hl_permit &id) const noexcept
    {
        return detail::to_ms(hl_permits_validity_ms(get(), &id));
    }

    /* `forever`: a permit without an end. */
    std::chrono::milliseconds lease_left(const hl_permit &id)
    {
        return left(detail::ask<std::int64_t, hl_permits_lease_left>(get(), &id));
    }

    std::chrono::milliseconds lease_left(const hl_permit &id, std::error_code &ec) noexcept
    {
        return left(detail::ask_ec<std::int64_t, hl_permits_lease_left>(ec, get(), &id));
    }

    /* The semaphore itself. */

    std::int64_t available()
    {
        return detail::ask<std::int64_t, hl_permits_available>(get());
    }

    std::int64_t available(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_permits_available>(ec, get());
    }

    std::int64_t acquired()
    {
        return detail::ask<std::int64_t, hl_permits_acquired>(get());
    }

    std::int64_t acquired(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_permits_acquired>(ec, get());
    }

    std::int64_t total()
    {
        return detail::ask<std::int64_t, hl_permits_total>(get());
    }

    std::int64_t total(std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::int64_t, hl_permits_total>(ec, get());
    }

    /* errc::exists: the semaphore is there already. Without a ttl, or with 0, it stays for ever. */

    void try_set_total(std::int64_t count)
    {
        detail::run<hl_permits_try_set_total>(get(), count, 0);
    }

    void try_set_total(std::int64_t count, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_try_set_total>(ec, get(), count, 0);
    }

    template <class Rep, class Period>
    void try_set_total(std::int64_t count, std::chrono::duration<Rep, Period> ttl)
    {
        detail::run<hl_permits_try_set_total>(get(), count, detail::span_ms(ttl));
    }

    template <class Rep, class Period>
    void try_set_total(std::int64_t count, std::chrono::duration<Rep, Period> ttl,
                       std::error_code &ec)
    {
        detail::run_ec<hl_permits_try_set_total>(ec, get(), count, detail::span_ms(ttl));
    }

    /* Without a ttl, or with 0, a semaphore that is there keeps its own. */

    void set_total(std::int64_t count)
    {
        detail::run<hl_permits_set_total>(get(), count, 0);
    }

    void set_total(std::int64_t count, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_set_total>(ec, get(), count, 0);
    }

    template <class Rep, class Period>
    void set_total(std::int64_t count, std::chrono::duration<Rep, Period> ttl)
    {
        detail::run<hl_permits_set_total>(get(), count, detail::span_ms(ttl));
    }

    template <class Rep, class Period>
    void set_total(std::int64_t count, std::chrono::duration<Rep, Period> ttl, std::error_code &ec)
    {
        detail::run_ec<hl_permits_set_total>(ec, get(), count, detail::span_ms(ttl));
    }

    /* Raises the total, or with a negative number lowers it. */

    void add(std::int64_t more)
    {
        detail::run<hl_permits_add>(get(), more);
    }

    void add(std::int64_t more, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_add>(ec, get(), more);
    }

    /* hl_permits_delete. errc::missing: there was none. */

    void remove()
    {
        detail::run<hl_permits_delete>(get());
    }

    void remove(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_permits_delete>(ec, get());
    }

    /* Calls that do not block (async.hpp). The owner is explicit, and the values are ids. */

    auto acquire_async(const owner &owner, acquire_options options = {})
    {
        options.owned_by(owner);
        return detail::later<hl_permit, hl_permits_acquire_async>(get(), options.raw());
    }

    auto acquire_many_async(const owner &owner, std::size_t count, acquire_options options = {})
    {
        options.owned_by(owner);
        return operation<std::vector<hl_permit>, hl_permits_acquire_many_async, hl_permits *,
                         std::size_t, hl_acquire_options>(std::vector<hl_permit>(room(count)),
                                                          get(), count, options.raw());
    }

    auto release_many_async(const std::vector<hl_permit> &ids)
    {
        return detail::later<void, hl_permits_release_many_async>(get(), ids.data(), ids.size());
    }

    auto release_async(const hl_permit &id)
    {
        return detail::later<void, hl_permits_release_async>(get(), id);
    }

    template <class Rep, class Period>
    auto update_lease_async(const hl_permit &id, std::chrono::duration<Rep, Period> lease)
    {
        return detail::later<void, hl_permits_update_lease_async>(get(), id,
                                                                  detail::span_ms(lease));
    }

    /* The value is in milliseconds; -1: a permit without an end. */
    auto lease_left_async(const hl_permit &id)
    {
        return detail::later<std::int64_t, hl_permits_lease_left_async>(get(), id);
    }

    auto available_async()
    {
        return detail::later<std::int64_t, hl_permits_available_async>(get());
    }

    auto acquired_async()
    {
        return detail::later<std::int64_t, hl_permits_acquired_async>(get());
    }

    auto total_async()
    {
        return detail::later<std::int64_t, hl_permits_total_async>(get());
    }

    auto try_set_total_async(std::int64_t count)
    {
        return detail::later<void, hl_permits_try_set_total_async>(get(), count, 0);
    }

    template <class Rep, class Period>
    auto try_set_total_async(std::int64_t count, std::chrono::duration<Rep, Period> ttl)
    {
        return detail::later<void, hl_permits_try_set_total_async>(get(), count,
                                                                   detail::span_ms(ttl));
    }

    auto set_total_async(std::int64_t count)
    {
        return detail::later<void, hl_permits_set_total_async>(get(), count, 0);
    }

    template <class Rep, class Period>
    auto set_total_async(std::int64_t count, std::chrono::duration<Rep, Period> ttl)
    {
        return detail::later<void, hl_permits_set_total_async>(get(), count, detail::span_ms(ttl));
    }

    auto add_async(std::int64_t more)
    {
        return detail::later<void, hl_permits_add_async>(get(), more);
    }

    auto remove_async()
    {
        return detail::later<void, hl_permits_delete_async>(get());
    }

  private:
    permit held(const hl_permit &id) const noexcept
    {
        return {get(), id, std::adopt_lock};
    }

    /* The call refuses a count out of range; it needs no memory before. */
    static std::size_t room(std::size_t count) noexcept
    {
        return std::min<std::size_t>(count, HL_PERMITS_MAX_PER_CALL);
    }

    static std::chrono::milliseconds left(std::int64_t ms) noexcept
    {
        return ms < 0 ? forever : detail::to_ms(ms);
    }
};

} // namespace hirelock

#endif
