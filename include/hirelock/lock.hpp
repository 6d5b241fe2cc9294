/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The lock in C++ (lock.h, fence.h), of any kind, and the read-write lock.
 *
 * hirelock::mutex meets Lockable and TimedLockable, hirelock::shared_mutex SharedTimedLockable as
 * well ([thread.req.lockable]), so std::unique_lock, std::scoped_lock, std::shared_lock and
 * std::lock work. (The name `lock` would be that of the constructor too.)
 *
 * Of these members try_lock and its like return false when the lock is busy or the time is over,
 * and throw hirelock::error on anything else. unlock() never throws, since destructors call it: a
 * hold that is lost, or whose release is in doubt, is reported by the events and by is_held().
 * Where the result of the release matters, use acquire() and the hold that it returns (hold.hpp),
 * or release().
 *
 * The owner is the calling thread, unless an owner is given. Inside a callback of the client
 * there is no such owner, so lock() fails with errc::invalid there.
 *
 * Threads: any.
 */
#ifndef HIRELOCK_LOCK_HPP
#define HIRELOCK_LOCK_HPP

#include <hirelock/hold.hpp>

namespace hirelock
{

/* hl_lock_options; the name is that of the constructor of the lock. */
class lock_options
{
  public:
    lock_options() noexcept = default;

    /* HL_LOCK_FAIR ...; and HL_LOCK_ASYNC_RELEASE ..., joined by |. */
    explicit lock_options(hl_lock_kind kind, unsigned flags = 0) noexcept
    {
        raw_.kind = kind;
        raw_.flags = flags;
    }

    lock_options &flags(unsigned flags) noexcept
    {
        raw_.flags = flags;
        return *this;
    }

    template <class Rep, class Period> lock_options &retain(std::chrono::duration<Rep, Period> time)
    {
        raw_.retain_ms = detail::span_ms(time);
        return *this;
    }

    /* HL_LOCK_SPIN only: the first pause of a waiter, and the longest. */
    lock_options &backoff(std::chrono::milliseconds least, std::chrono::milliseconds most) noexcept
    {
        raw_.backoff_min_ms = least.count();
        raw_.backoff_max_ms = most.count();
        return *this;
    }

    lock_options &min_replicas(int count) noexcept
    {
        raw_.min_replicas = count;
        return *this;
    }

    const hl_lock_options &raw() const noexcept
    {
        return raw_;
    }

  private:
    hl_lock_options raw_ = HL_LOCK_OPTIONS_INIT;
};

class mutex : public detail::handle<hl_lock, hl_lock_free>
{
  public:
    mutex() noexcept = default;
    using handle::handle;

    /* The reentrant lock of that name. No I/O. */
    mutex(client &client, detail::text name)
    {
        *this = mutex(detail::ask<hl_lock *, hl_lock_new>(client.get(), name.get()));
    }

    mutex(client &client, detail::text name, std::error_code &ec) noexcept
    {
        *this = mutex(detail::ask_ec<hl_lock *, hl_lock_new>(ec, client.get(), name.get()));
    }

    /* The lock of that kind; the name may hold any bytes. */
    mutex(client &client, std::string_view name, const lock_options &options)
    {
        const hl_lock_options raw = named(name, options);
        *this = mutex(detail::ask<hl_lock *, hl_lock_new_with>(client.get(), &raw));
    }

    mutex(client &client, std::string_view name, const lock_options &options,
          std::error_code &ec) noexcept
    {
        const hl_lock_options raw = named(name, options);
        *this = mutex(detail::ask_ec<hl_lock *, hl_lock_new_with>(ec, client.get(), &raw));
    }

    /* As it stands in Redis, with the client's prefix; empty for an empty handle. */
    std::string_view name() const noexcept
    {
        std::size_t length = 0;
        const char *text = hl_lock_name(get(), &length);
        return text != nullptr ? std::string_view(text, length) : std::string_view();
    }

    /* Lockable, TimedLockable: for the calling thread. */

    void lock()
    {
        detail::run<hl_lock_acquire>(get());
    }

    bool try_lock()
    {
        return detail::got<hl_lock_try_acquire>(get());
    }

    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> wait)
    {
        return try_lock_ms(detail::wait_ms(wait));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        return detail::retry_until(point, [this](std::int64_t ms) { return try_lock_ms(ms); });
    }

    /* Releases, and drops the result, as the destructor of a hold does (hold.hpp). */
    void unlock() noexcept
    {
        detail::release_quietly([this] { return hl_lock_release(get(), nullptr); });
    }

    /* A hold of the calling thread, or of the owner of the options, which it borrows. */

    hold acquire()
    {
        detail::run<hl_lock_acquire>(get());
        return {get(), nullptr, std::adopt_lock};
    }

    hold acquire(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_acquire>(ec, get());
        return ec ? hold() : hold(get(), nullptr, std::adopt_lock);
    }

    hold acquire(const acquire_options &options)
    {
        detail::run<hl_lock_acquire_with>(get(), &options.raw());
        return {get(), options.raw().owner, std::adopt_lock};
    }

    hold acquire(const acquire_options &options, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_acquire_with>(ec, get(), &options.raw());
        return ec ? hold() : hold(get(), options.raw().owner, std::adopt_lock);
    }

    /* A hold that carries its owner, so that it may end in any thread. */
    hold acquire(owner &&owner, acquire_options options = {})
    {
        options.owned_by(owner);
        detail::run<hl_lock_acquire_with>(get(), &options.raw());
        return {get(), std::move(owner), std::adopt_lock};
    }

    hold acquire(owner &&owner, acquire_options options, std::error_code &ec) noexcept
    {
        options.owned_by(owner);
        detail::run_ec<hl_lock_acquire_with>(ec, get(), &options.raw());
        return ec ? hold() : hold(get(), std::move(owner), std::adopt_lock);
    }

    /* Empty when the lock is busy, or the time is over. */
    hold try_acquire()
    {
        return try_lock() ? hold(get(), nullptr, std::adopt_lock) : hold();
    }

    template <class Rep, class Period> hold try_acquire_for(std::chrono::duration<Rep, Period> wait)
    {
        return try_lock_for(wait) ? hold(get(), nullptr, std::adopt_lock) : hold();
    }

    template <class Clock, class Duration>
    hold try_acquire_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        return try_lock_until(point) ? hold(get(), nullptr, std::adopt_lock) : hold();
    }

    /* Empty, and the code, when there is no hold. */
    hold try_acquire(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_try_acquire>(ec, get());
        return ec ? hold() : hold(get(), nullptr, std::adopt_lock);
    }

    template <class Rep, class Period>
    hold try_acquire_for(std::chrono::duration<Rep, Period> wait, std::error_code &ec)
    {
        detail::run_ec<hl_lock_acquire_for>(ec, get(), detail::wait_ms(wait));
        return ec ? hold() : hold(get(), nullptr, std::adopt_lock);
    }

    /* Releases one level: of the calling thread, or of an owner. */

    void release()
    {
        detail::run<hl_lock_release>(get());
    }

    void release(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_release>(ec, get());
    }

    void release(const owner &owner)
    {
        detail::run<hl_lock_release_as>(get(), owner.get());
    }

    void release(const owner &owner, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_release_as>(ec, get(), owner.get());
    }

    /* hl_lock_update_lease: the hold ends so long from now; 0: it is renewed from now on. */

    template <class Rep, class Period> void update_lease(std::chrono::duration<Rep, Period> lease)
    {
        detail::run<hl_lock_update_lease>(get(), nobody, detail::span_ms(lease));
    }

    template <class Rep, class Period>
    void update_lease(std::chrono::duration<Rep, Period> lease, std::error_code &ec)
    {
        detail::run_ec<hl_lock_update_lease>(ec, get(), nobody, detail::span_ms(lease));
    }

    template <class Rep, class Period>
    void update_lease(const owner &owner, std::chrono::duration<Rep, Period> lease)
    {
        detail::run<hl_lock_update_lease>(get(), owner.get(), detail::span_ms(lease));
    }

    template <class Rep, class Period>
    void update_lease(const owner &owner, std::chrono::duration<Rep, Period> lease,
                      std::error_code &ec)
    {
        detail::run_ec<hl_lock_update_lease>(ec, get(), owner.get(), detail::span_ms(lease));
    }

    /* hl_lock_set_and_release: writes, and releases, in one step of the server. */

    void set_and_release(const fenced_write &write)
    {
        detail::run<hl_lock_set_and_release>(get(), nobody, &write.raw());
    }

    void set_and_release(const fenced_write &write, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_set_and_release>(ec, get(), nobody, &write.raw());
    }

    void set_and_release(const owner &owner, const fenced_write &write)
    {
        detail::run<hl_lock_set_and_release>(get(), owner.get(), &write.raw());
    }

    void set_and_release(const owner &owner, const fenced_write &write,
                         std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_set_and_release>(ec, get(), owner.get(), &write.raw());
    }

    /* For operators: takes the lock from its holder. errc::missing: it was not locked. */
    void force_release()
    {
        detail::run<hl_lock_force_release>(get());
    }

    void force_release(std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_force_release>(ec, get());
    }

    /* Asks the server who holds the lock. */
    hl_lock_info inspect()
    {
        hl_lock_info info = HL_LOCK_INFO_INIT;
        detail::run<hl_lock_inspect>(get(), &info);
        return info;
    }

    hl_lock_info inspect(std::error_code &ec) noexcept
    {
        hl_lock_info info = HL_LOCK_INFO_INIT;
        detail::run_ec<hl_lock_inspect>(ec, get(), &info);
        return info;
    }

    /* The hold of the calling thread, or of an owner, without I/O. */
    bool is_held() const noexcept
    {
        return hl_lock_is_held(get(), nullptr);
    }

    bool is_held(const owner &owner) const noexcept
    {
        return hl_lock_is_held(get(), owner.get());
    }

    std::chrono::milliseconds validity() const noexcept
    {
        return detail::to_ms(hl_lock_validity_ms(get(), nullptr));
    }

    std::chrono::milliseconds validity(const owner &owner) const noexcept
    {
        return detail::to_ms(hl_lock_validity_ms(get(), owner.get()));
    }

    std::uint32_t hold_count() const noexcept
    {
        return hl_lock_hold_count(get(), nullptr);
    }

    std::uint32_t hold_count(const owner &owner) const noexcept
    {
        return hl_lock_hold_count(get(), owner.get());
    }

    /* HL_LOCK_FENCED: the token of the hold; 0: there is none. */
    std::uint64_t token() const noexcept
    {
        return hl_lock_token(get(), nullptr);
    }

    std::uint64_t token(const owner &owner) const noexcept
    {
        return hl_lock_token(get(), owner.get());
    }

    /* HL_LOCK_FENCED: the next tokens are larger than this one. */
    void raise_token(std::uint64_t token)
    {
        detail::run<hl_lock_raise_token>(get(), token);
    }

    void raise_token(std::uint64_t token, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_lock_raise_token>(ec, get(), token);
    }

    /* Calls that do not block (async.hpp). The owner is explicit. */

    auto acquire_async(const owner &owner, acquire_options options = {})
    {
        options.owned_by(owner);
        return detail::later<void, hl_lock_acquire_async>(get(), options.raw());
    }

    auto release_async(const owner &owner)
    {
        return detail::later<void, hl_lock_release_async>(get(), owner.get());
    }

    template <class Rep, class Period>
    auto update_lease_async(const owner &owner, std::chrono::duration<Rep, Period> lease)
    {
        return detail::later<void, hl_lock_update_lease_async>(get(), owner.get(),
                                                               detail::span_ms(lease));
    }

    auto set_and_release_async(const owner &owner, const fenced_write &write)
    {
        return detail::later<void, hl_lock_set_and_release_async>(get(), owner.get(), write.raw());
    }

    auto raise_token_async(std::uint64_t token)
    {
        return detail::later<void, hl_lock_raise_token_async>(get(), token);
    }

    auto force_release_async()
    {
        return detail::later<void, hl_lock_force_release_async>(get());
    }

    auto inspect_async()
    {
        return operation<hl_lock_info, hl_lock_inspect_async, hl_lock *>(HL_LOCK_INFO_INIT, get());
    }

  private:
    static constexpr hl_owner *nobody = nullptr; /* the calling thread */

    static hl_lock_options named(std::string_view name, const lock_options &options) noexcept
    {
        hl_lock_options raw = options.raw();
        raw.name = detail::bytes_of(name);
        raw.name_length = name.size();
        return raw;
    }

    bool try_lock_ms(std::int64_t wait_ms)
    {
        return detail::got<hl_lock_acquire_for>(get(), wait_ms);
    }
};

/* The read-write lock of a name: two handles, HL_LOCK_WRITE and HL_LOCK_READ. */
class shared_mutex
{
  public:
    shared_mutex() noexcept = default;

    /* Flags and others are those of the write lock; HL_LOCK_PREFER_WRITERS is for it only. */
    shared_mutex(client &client, std::string_view name, unsigned flags = 0)
        : write_(client, name, lock_options(HL_LOCK_WRITE, flags)),
          read_(client, name, lock_options(HL_LOCK_READ, flags & ~unsigned{HL_LOCK_PREFER_WRITERS}))
    {
    }

    shared_mutex(client &client, std::string_view name, unsigned flags,
                 std::error_code &ec) noexcept
        : write_(client, name, lock_options(HL_LOCK_WRITE, flags), ec)
    {
        const unsigned read_flags = flags & ~unsigned{HL_LOCK_PREFER_WRITERS};
        if (!ec)
            read_ = mutex(client, name, lock_options(HL_LOCK_READ, read_flags), ec);
    }

    /* The two locks, for holds, results and async calls. */
    mutex &writer() noexcept
    {
        return write_;
    }

    mutex &reader() noexcept
    {
        return read_;
    }

    void lock()
    {
        write_.lock();
    }

    bool try_lock()
    {
        return write_.try_lock();
    }

    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> wait)
    {
        return write_.try_lock_for(wait);
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        return write_.try_lock_until(point);
    }

    void unlock() noexcept
    {
        write_.unlock();
    }

    void lock_shared()
    {
        read_.lock();
    }

    bool try_lock_shared()
    {
        return read_.try_lock();
    }

    template <class Rep, class Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait)
    {
        return read_.try_lock_for(wait);
    }

    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &point)
    {
        return read_.try_lock_until(point);
    }

    void unlock_shared() noexcept
    {
        read_.unlock();
    }

  private:
    mutex write_{};
    mutex read_{};
};

} // namespace hirelock

#endif
