/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The client, a cancel and an owner in C++ (client.h, lock.h).
 *
 * The destructor of a client closes it. That waits for callbacks, so it is not possible inside a
 * callback of this client: close() throws errc::deadlock there, and a destructor ends the program
 * (std::terminate), as the end of a std::thread does that was not joined. Mind a coroutine that
 * owns the last reference to its client. In a forked child the destructor closes nothing.
 *
 * Threads: as the calls of C; moving a handle needs that no other thread uses it.
 */
#ifndef HIRELOCK_CLIENT_HPP
#define HIRELOCK_CLIENT_HPP

#include <hirelock/async.hpp>
#include <hirelock/client_options.hpp>
#include <hirelock/lock.h>

namespace hirelock
{

/* "jeopardy", "safe", "lost" ... (hl_event_name). */
inline const char *name(hl_event_kind kind) noexcept
{
    return hl_event_name(kind);
}

/* "error", "warning", "info", "debug" (hl_log_level_name). */
inline const char *name(hl_log_level level) noexcept
{
    return hl_log_level_name(level);
}

/* "oom", "denied", "readonly" ... (hl_reason_name). */
inline const char *name(hl_reason reason) noexcept
{
    return hl_reason_name(reason);
}

/* A write with a fencing token (hl_fenced_write); key and value are not copied before the call. */
class fenced_write
{
  public:
    fenced_write(std::string_view key, std::string_view value) noexcept
    {
        raw_.key = detail::bytes_of(key);
        raw_.key_length = key.size();
        raw_.value = detail::bytes_of(value);
        raw_.value_length = value.size();
    }

    fenced_write &token(std::uint64_t token) noexcept
    {
        raw_.token = token;
        return *this;
    }

    template <class Rep, class Period> fenced_write &expire(std::chrono::duration<Rep, Period> time)
    {
        raw_.expire_ms = detail::span_ms(time);
        return *this;
    }

    template <class Rep, class Period>
    fenced_write &remember(std::chrono::duration<Rep, Period> time)
    {
        raw_.remember_ms = detail::span_ms(time);
        return *this;
    }

    const hl_fenced_write &raw() const noexcept
    {
        return raw_;
    }

  private:
    hl_fenced_write raw_ = HL_FENCED_WRITE_INIT;
};

class client
{
  public:
    client() noexcept = default;

    /* hl_client_open. */
    explicit client(detail::text url, const client_options &options = {})
    {
        hl_error reason = HL_ERROR_INIT;
        const int code = open(url.get(), options, &reason);
        if (code < 0)
            throw error(code, reason);
    }

    client(detail::text url, const client_options &options, std::error_code &ec)
    {
        detail::set(ec, open(url.get(), options, nullptr));
    }

    client(client &&) noexcept = default;

    /* The old client is closed before its functions end. */
    client &operator=(client &&other) noexcept
    {
        client taken(std::move(other));
        std::swap(callbacks_, taken.callbacks_);
        std::swap(item_, taken.item_);
        return *this;
    }

    ~client() = default;

    hl_client *get() const noexcept
    {
        return item_.get();
    }

    explicit operator bool() const noexcept
    {
        return item_ != nullptr;
    }

    /* hl_client_close; afterwards the client is empty. */
    void close()
    {
        detail::run_bare<hl_client_close>(get());
        (void)item_.release();
        callbacks_.reset();
    }

    void close(std::error_code &ec) noexcept
    {
        detail::run_bare_ec<hl_client_close>(ec, get());
        if (ec)
            return;
        (void)item_.release();
        callbacks_.reset();
    }

    /* hl_client_ping; without a time it waits for ever. */

    void ping()
    {
        ping(forever);
    }

    void ping(std::error_code &ec) noexcept
    {
        ping(forever, ec);
    }

    template <class Rep, class Period> void ping(std::chrono::duration<Rep, Period> wait)
    {
        detail::run<hl_client_ping>(get(), detail::wait_ms(wait));
    }

    template <class Rep, class Period>
    void ping(std::chrono::duration<Rep, Period> wait, std::error_code &ec)
    {
        detail::run_ec<hl_client_ping>(ec, get(), detail::wait_ms(wait));
    }

    auto ping_async()
    {
        return detail::later<void, hl_client_ping_async>(get(), HL_WAIT_FOREVER);
    }

    template <class Rep, class Period> auto ping_async(std::chrono::duration<Rep, Period> wait)
    {
        return detail::later<void, hl_client_ping_async>(get(), detail::wait_ms(wait));
    }

    /* The client's UUID; NULL for an empty client. */
    const char *id() const noexcept
    {
        return hl_client_id(get());
    }

    /* With HL_CLIENT_DISPATCH: readable while callbacks wait for dispatch(). */
    int fd() const
    {
        return detail::run_bare<hl_client_fd>(get_const());
    }

    int fd(std::error_code &ec) const noexcept
    {
        return detail::run_bare_ec<hl_client_fd>(ec, get_const());
    }

    /* With HL_CLIENT_DISPATCH: runs the callbacks that wait, and returns their number. */
    int dispatch()
    {
        return detail::run_bare<hl_client_dispatch>(get());
    }

    int dispatch(std::error_code &ec) noexcept
    {
        return detail::run_bare_ec<hl_client_dispatch>(ec, get());
    }

    hl_stats stats() const
    {
        hl_stats stats = HL_STATS_INIT;
        detail::run_bare<hl_client_stats>(get(), &stats);
        return stats;
    }

    hl_stats stats(std::error_code &ec) const noexcept
    {
        hl_stats stats = HL_STATS_INIT;
        detail::run_bare_ec<hl_client_stats>(ec, get(), &stats);
        return stats;
    }

    hl_histogram histogram(hl_measure measure) const
    {
        hl_histogram histogram = HL_HISTOGRAM_INIT;
        detail::run_bare<hl_client_histogram>(get(), measure, &histogram);
        return histogram;
    }

    hl_histogram histogram(hl_measure measure, std::error_code &ec) const noexcept
    {
        hl_histogram histogram = HL_HISTOGRAM_INIT;
        detail::run_bare_ec<hl_client_histogram>(ec, get(), measure, &histogram);
        return histogram;
    }

    /* hl_client_nodes: `visit` takes a const hl_node &, in this thread. An exception of `visit`
     * ends the visits, and comes out of this call. Returns the number of servers. */
    template <class Visit> int nodes(Visit visit) const
    {
        tour<Visit> walk(visit);
        const int count = detail::run_bare<hl_client_nodes>(get(), &tour<Visit>::step, &walk);
        walk.end();
        return count;
    }

    template <class Visit> int nodes(Visit visit, std::error_code &ec) const
    {
        tour<Visit> walk(visit);
        const int count =
            detail::run_bare_ec<hl_client_nodes>(ec, get(), &tour<Visit>::step, &walk);
        walk.end();
        return count;
    }

    /* hl_fence_set: writes, unless a larger token has written before. */
    void fence_set(const fenced_write &write)
    {
        detail::run<hl_fence_set>(get(), &write.raw());
    }

    void fence_set(const fenced_write &write, std::error_code &ec) noexcept
    {
        detail::run_ec<hl_fence_set>(ec, get(), &write.raw());
    }

    auto fence_set_async(const fenced_write &write)
    {
        return detail::later<void, hl_fence_set_async>(get(), write.raw());
    }

    /* hl_fence_token: the largest token that is remembered for a key. */
    std::uint64_t fence_token(std::string_view key)
    {
        return detail::ask<std::uint64_t, hl_fence_token>(get(), detail::bytes_of(key), key.size());
    }

    std::uint64_t fence_token(std::string_view key, std::error_code &ec) noexcept
    {
        return detail::ask_ec<std::uint64_t, hl_fence_token>(ec, get(), detail::bytes_of(key),
                                                             key.size());
    }

    auto fence_token_async(std::string_view key)
    {
        return detail::later<std::uint64_t, hl_fence_token_async>(get(), detail::bytes_of(key),
                                                                  key.size());
    }

  private:
    struct closer {
        void operator()(hl_client *item) const noexcept
        {
            if (hl_client_close(item) == HL_EDEADLK)
                std::terminate(); /* in a callback of this client */
        }
    };

    template <class Visit> struct tour {
        explicit tour(Visit &function) : visit(function)
        {
        }

        tour(const tour &) = delete;
        tour &operator=(const tour &) = delete;

        static void step(const hl_node *node, void *arg) noexcept
        {
            auto *self = static_cast<tour *>(arg);
            try {
                if (!self->failure)
                    self->visit(*node);
            } catch (...) {
                self->failure = std::current_exception();
            }
        }

        void end() const
        {
            if (failure)
                std::rethrow_exception(failure);
        }

        Visit &visit;
        std::exception_ptr failure{};
    };

    const hl_client *get_const() const noexcept
    {
        return item_.get();
    }

    int open(const char *url, const client_options &options, hl_error *reason)
    {
        hl_client_options raw = options.raw();
        if (!options.functions().is_empty()) {
            callbacks_ = std::make_unique<detail::callbacks>(options.functions());
            callbacks_->enter(raw);
        }
        hl_client *item = nullptr;
        const int code = hl_client_open(url, &raw, &item, reason);
        item_.reset(item);
        return code;
    }

    std::unique_ptr<detail::callbacks> callbacks_{};
    std::unique_ptr<hl_client, closer> item_{}; /* ends before the functions do */
};

/* An owner of locks beside the calling thread. When it ends, its holds go on (hl_owner_free). */
class owner : public detail::handle<hl_owner, hl_owner_free>
{
  public:
    owner() noexcept = default;
    using handle::handle;

    explicit owner(client &client)
    {
        hl_owner *item = nullptr;
        detail::run_bare<hl_owner_new>(client.get(), &item);
        *this = owner(item);
    }

    owner(client &client, std::error_code &ec) noexcept
    {
        hl_owner *item = nullptr;
        detail::run_bare_ec<hl_owner_new>(ec, client.get(), &item);
        *this = owner(item);
    }
};

/* Ends the waits that carry it, once. It must live until they have ended. */
class cancel : public detail::handle<hl_cancel, hl_cancel_free>
{
  public:
    cancel()
    {
        hl_cancel *item = nullptr;
        detail::run_bare<hl_cancel_new>(&item);
        *this = cancel(item);
    }

    explicit cancel(std::error_code &ec) noexcept
    {
        hl_cancel *item = nullptr;
        detail::run_bare_ec<hl_cancel_new>(ec, &item);
        *this = cancel(item);
    }

    using handle::handle;

    /* hl_cancel_fire: from any thread, and from a signal handler. */
    void fire() noexcept
    {
        hl_cancel_fire(get());
    }
};

/* How long a call of a semaphore or a latch waits (hl_wait_options). */
class wait_options
{
  public:
    template <class Rep, class Period> wait_options &wait(std::chrono::duration<Rep, Period> time)
    {
        raw_.wait_ms = detail::wait_ms(time);
        return *this;
    }

    wait_options &cancel_by(const cancel &cancel) noexcept
    {
        raw_.cancel = cancel.get();
        return *this;
    }

    const hl_wait_options &raw() const noexcept
    {
        return raw_;
    }

  private:
    hl_wait_options raw_ = HL_WAIT_OPTIONS_INIT;
};

} // namespace hirelock

#endif
