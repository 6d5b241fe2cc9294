/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A hold of a lock: what an acquire returns where the result of the release matters.
 *
 *     hirelock::hold hold = lock.acquire();
 *     work();
 *     hold.release(); // throws errc::lost when the hold had ended before
 *
 * The destructor of a hold that was not released releases it, and drops the result: a loss is
 * reported by the event HL_EVENT_LOST and by is_held() all the same, and a release that is in doubt
 * is repeated in the background (error.h). Only for want of memory nothing is sent; then the
 * destructor tries again after 10 ms until there is some, since nobody else would ever release that
 * lock.
 *
 * A hold belongs to the thread that acquired it, or to the owner that it carries. A hold without
 * an owner ends in its thread: so give one to a hold that moves to another thread. The handle of
 * the lock must outlive its holds, and so must a borrowed owner.
 */
#ifndef HIRELOCK_HOLD_HPP
#define HIRELOCK_HOLD_HPP

#include <hirelock/client.hpp>

#include <mutex>
#include <thread>

namespace hirelock
{

/* hl_acquire_options. */
class acquire_options
{
  public:
    /* How long to wait; without it there is no end. Negative: not at all. */
    template <class Rep, class Period>
    acquire_options &wait(std::chrono::duration<Rep, Period> time)
    {
        raw_.wait_ms = detail::wait_ms(time);
        return *this;
    }

    /* The hold ends after so long, and is not renewed. */
    template <class Rep, class Period>
    acquire_options &lease(std::chrono::duration<Rep, Period> time)
    {
        raw_.lease_ms = detail::span_ms(time);
        return *this;
    }

    template <class Rep, class Period>
    acquire_options &max_hold(std::chrono::duration<Rep, Period> time)
    {
        raw_.max_hold_ms = detail::span_ms(time);
        return *this;
    }

    template <class Rep, class Period>
    acquire_options &min_hold(std::chrono::duration<Rep, Period> time)
    {
        raw_.min_hold_ms = detail::span_ms(time);
        return *this;
    }

    /* In place of the calling thread. */
    acquire_options &owned_by(const owner &owner) noexcept
    {
        raw_.owner = owner.get();
        return *this;
    }

    acquire_options &cancel_by(const cancel &cancel) noexcept
    {
        raw_.cancel = cancel.get();
        return *this;
    }

    /* `listener` takes a const hl_event &. It is not copied: it must live as event_arg of
     * hl_acquire_options. */
    template <class Listener> acquire_options &on_event(Listener &listener) noexcept
    {
        raw_.on_event = [](const hl_event *event, void *arg) noexcept {
            if constexpr (std::is_function_v<Listener>)
                reinterpret_cast<Listener *>(arg)(*event);
            else
                (*static_cast<Listener *>(arg))(*event);
        };
        if constexpr (std::is_function_v<Listener>)
            raw_.event_arg = reinterpret_cast<void *>(&listener);
        else
            raw_.event_arg = const_cast<void *>(static_cast<const void *>(&listener));
        return *this;
    }

    const hl_acquire_options &raw() const noexcept
    {
        return raw_;
    }

  private:
    hl_acquire_options raw_ = HL_ACQUIRE_OPTIONS_INIT;
};

namespace detail
{

/* After these codes nothing was changed, so the owner still holds what it held. */
inline bool is_unchanged(int code) noexcept
{
    return code == HL_ENOMEM || code == HL_EINVAL || code == HL_ENOTSUP;
}

/* A release whose result nobody takes. */
template <class Release> void release_quietly(Release release) noexcept
{
    while (release() == HL_ENOMEM)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

} // namespace detail

class [[nodiscard]] hold
{
  public:
    /* Nothing is held. */
    hold() noexcept = default;

    /* For a lock that is held already: by `owner`, or NULL for the calling thread. */
    hold(hl_lock *lock, hl_owner *owner, std::adopt_lock_t) noexcept : lock_(lock), owner_(owner)
    {
    }

    /* The same, and the owner ends with the hold. */
    hold(hl_lock *lock, owner &&owner, std::adopt_lock_t) noexcept
        : lock_(lock), owner_(owner.get()), own_(std::move(owner))
    {
    }

    hold(hold &&other) noexcept
        : lock_(std::exchange(other.lock_, nullptr)), owner_(std::exchange(other.owner_, nullptr)),
          own_(std::move(other.own_))
    {
    }

    hold &operator=(hold &&other) noexcept
    {
        hold taken(std::move(other));
        std::swap(lock_, taken.lock_);
        std::swap(owner_, taken.owner_);
        std::swap(own_, taken.own_);
        return *this;
    }

    hold(const hold &) = delete;
    hold &operator=(const hold &) = delete;

    ~hold()
    {
        if (lock_ != nullptr)
            detail::release_quietly([this] { return hl_lock_release_as(lock_, owner_, nullptr); });
    }

    /* There is something to release. It may be lost: is_held() says that. */
    explicit operator bool() const noexcept
    {
        return lock_ != nullptr;
    }

    /* hl_lock_release_as. Whatever the result, the hold is empty afterwards; but after
     * errc::no_memory and errc::invalid it still stands, and may be released again. An empty hold
     * gives errc::invalid. */
    void release()
    {
        hl_error reason = HL_ERROR_INIT;
        const int code = end(hl_lock_release_as(lock_, owner_, &reason));
        if (code < 0)
            throw error(code, reason);
    }

    void release(std::error_code &ec) noexcept
    {
        detail::set(ec, end(hl_lock_release_as(lock_, owner_, nullptr)));
    }

    /* hl_lock_release_async of a hold with an owner. The hold is empty once the call has begun, and
     * may end before the call does. */
    auto release_async()
    {
        return operation<void, begin_release, hold *>({}, this);
    }

    /* hl_lock_set_and_release: writes, and releases, in one step of the server. */
    void set_and_release(const fenced_write &write)
    {
        hl_error reason = HL_ERROR_INIT;
        const int code = end(hl_lock_set_and_release(lock_, owner_, &write.raw(), &reason));
        if (code < 0)
            throw error(code, reason);
    }

    void set_and_release(const fenced_write &write, std::error_code &ec) noexcept
    {
        detail::set(ec, end(hl_lock_set_and_release(lock_, owner_, &write.raw(), nullptr)));
    }

    /* The lock stays held, and this hold forgets it. */
    void dismiss() noexcept
    {
        lock_ = nullptr;
    }

    /* hl_lock_is_held: true only while the hold is valid. */
    bool is_held() const noexcept
    {
        return hl_lock_is_held(lock_, owner_);
    }

    std::chrono::milliseconds validity() const noexcept
    {
        return detail::to_ms(hl_lock_validity_ms(lock_, owner_));
    }

    std::uint32_t hold_count() const noexcept
    {
        return hl_lock_hold_count(lock_, owner_);
    }

    /* The fencing token; 0 of a hold without one. */
    std::uint64_t token() const noexcept
    {
        return hl_lock_token(lock_, owner_);
    }

    /* hl_lock_update_lease: the hold ends so long from now; 0: it is renewed from now on. */
    template <class Rep, class Period> void update_lease(std::chrono::duration<Rep, Period> lease)
    {
        detail::run<hl_lock_update_lease>(lock_, owner_, detail::span_ms(lease));
    }

    template <class Rep, class Period>
    void update_lease(std::chrono::duration<Rep, Period> lease, std::error_code &ec)
    {
        detail::run_ec<hl_lock_update_lease>(ec, lock_, owner_, detail::span_ms(lease));
    }

  private:
    int end(int code) noexcept
    {
        if (!detail::is_unchanged(code))
            lock_ = nullptr;
        return code;
    }

    /* The hold may be gone before the call has returned 0. */
    static int begin_release(hold *self, hl_done_cb done, void *arg) noexcept
    {
        hl_lock *lock = std::exchange(self->lock_, nullptr);
        const int code = hl_lock_release_async(lock, self->owner_, done, arg);
        if (code < 0)
            self->lock_ = lock;
        return code;
    }

    hl_lock *lock_ = nullptr;
    hl_owner *owner_ = nullptr;
    owner own_{};
};

} // namespace hirelock

#endif
