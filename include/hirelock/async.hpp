/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Calls that do not block. Each call xxx_async() returns an operation, which has not begun. It is
 * begun in one of two ways:
 *
 *     lock.acquire_async(owner).start([](hirelock::outcome<void> &got) { ... });
 *     co_await lock.acquire_async(owner); // C++20
 *
 * The completion, or the rest of the coroutine, runs on the client's callback thread, or inside
 * client::dispatch() with HL_CLIENT_DISPATCH, and inside the close (client.h). It does not run
 * inside the call, but on the callback thread it may run before the call has returned. It must not
 * block on something that a later callback releases. A coroutine whose operation could not begin
 * goes on at once, in its thread.
 *
 * An operation reads its arguments when it begins. Until then they must live: begin it in the
 * statement that makes it. Only the cancel and the listener of its options must live longer.
 *
 * A coroutine must not be destroyed while it waits for an operation: the completion would come to
 * freed memory, and a lock would be held by nobody. So that ends the program (std::terminate), as
 * the end of a std::thread does that was not joined. Fire the cancel, and let the coroutine go on.
 *
 * An exception that leaves a completion ends the program as well, and so does one that a coroutine
 * lets out of its unhandled_exception().
 */
#ifndef HIRELOCK_ASYNC_HPP
#define HIRELOCK_ASYNC_HPP

#include <hirelock/fence.h>
#include <hirelock/handle.hpp>
#include <hirelock/multi_lock.h>
#include <hirelock/permits.h>

#include <algorithm>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace hirelock
{

/* How an operation ended. */
template <class T> class outcome
{
  public:
    /* void has no values, so the outcome of such a call has this one. */
    using value_type = std::conditional_t<std::is_void_v<T>, std::tuple<>, T>;

    explicit outcome(value_type value) : value_(std::move(value))
    {
    }

    /* True if it succeeded. */
    explicit operator bool() const noexcept
    {
        return reason_.code >= 0;
    }

    std::error_code code() const noexcept
    {
        return {reason_.code, category()};
    }

    const hl_error &reason() const noexcept
    {
        return reason_;
    }

    /* Without a look at the code. */
    value_type &value() noexcept
    {
        return value_;
    }

    /* The value, or the exception. */
    T get()
    {
        if (!*this)
            throw error(reason_.code, reason_);
        return std::forward<T>(value_);
    }

    void fail(const hl_error &reason) noexcept
    {
        reason_ = reason;
    }

  private:
    hl_error reason_ = HL_ERROR_INIT;
    value_type value_;
};

template <> inline void outcome<void>::get()
{
    if (!*this)
        throw error(reason_.code, reason_);
}

namespace detail
{

/* An operation under way; `finish` is the last thing that touches it. */
template <class T> struct pending {
    explicit pending(typename outcome<T>::value_type value) : result(std::move(value))
    {
    }

    outcome<T> result;
    void (*finish)(pending *self) = nullptr;

    void end(int code, const hl_error *err) noexcept
    {
        if (code < 0)
            result.fail(err != nullptr ? *err : last_error(code));
        finish(this);
    }
};

/* The completions of C. They are noexcept, so no exception goes through the library. */
template <class T> struct completion;

template <> struct completion<void> {
    static void run(int code, const hl_error *err, void *arg) noexcept
    {
        static_cast<pending<void> *>(arg)->end(code, err);
    }
};

template <> struct completion<std::int64_t> {
    static void run(int code, std::int64_t count, const hl_error *err, void *arg) noexcept
    {
        auto *self = static_cast<pending<std::int64_t> *>(arg);
        self->result.value() = count;
        self->end(code, err);
    }
};

template <> struct completion<std::uint64_t> {
    static void run(int code, std::uint64_t token, const hl_error *err, void *arg) noexcept
    {
        auto *self = static_cast<pending<std::uint64_t> *>(arg);
        self->result.value() = token;
        self->end(code, err);
    }
};

template <> struct completion<hl_lock_info> {
    static void run(int code, const hl_lock_info *info, const hl_error *err, void *arg) noexcept
    {
        auto *self = static_cast<pending<hl_lock_info> *>(arg);
        if (info != nullptr)
            self->result.value() = *info;
        self->end(code, err);
    }
};

template <> struct completion<hl_permit> {
    static void run(int code, const hl_permit *permits, std::size_t count, const hl_error *err,
                    void *arg) noexcept
    {
        auto *self = static_cast<pending<hl_permit> *>(arg);
        if (count > 0)
            self->result.value() = permits[0];
        self->end(code, err);
    }
};

/* Permits, and codes: the vector had its memory before the call, for as many as there may be. */
template <class Item> struct completion<std::vector<Item>> {
    static void run(int code, const Item *items, std::size_t count, const hl_error *err,
                    void *arg) noexcept
    {
        auto *self = static_cast<pending<std::vector<Item>> *>(arg);
        std::vector<Item> &value = self->result.value();
        value.resize(std::min(count, value.size()));
        std::copy_n(items, value.size(), value.begin());
        self->end(code, err);
    }
};

/* A call that did not begin has no items, only their memory. */
template <class Item> void drop_items(std::vector<Item> &items) noexcept
{
    items.clear();
}

template <class T> void drop_items(T &) noexcept
{
}

/* Structs go to C by their address, all else as it is. */
template <class Arg> auto pass(const Arg &arg) noexcept
{
    if constexpr (std::is_class_v<Arg>)
        return &arg;
    else
        return arg;
}

/* With arguments of its own: those of the operation may be gone before the call has returned. */
template <class T, auto Call, class... Args>
int begin(const std::tuple<Args...> &args, pending<T> *item) noexcept
{
    try {
        const std::tuple<Args...> own = args;
        return std::apply(
            [item](const Args &...each) {
                return Call(pass(each)..., &completion<T>::run, static_cast<void *>(item));
            },
            own);
    } catch (const std::bad_alloc &) {
        return HL_ENOMEM; /* before the call: of a command's words */
    }
}

/* An operation whose completion is a function: it frees itself. */
template <class T, class Done> struct callback : pending<T> {
    callback(typename outcome<T>::value_type value, Done function)
        : pending<T>(std::move(value)), done(std::move(function))
    {
        this->finish = [](pending<T> *self) {
            const std::unique_ptr<callback> mine(static_cast<callback *>(self));
            mine->done(mine->result);
        };
    }

    Done done;
};

#if defined(__cpp_impl_coroutine)

template <class T, auto Call, class... Args> class awaiter : private pending<T>
{
  public:
    awaiter(typename outcome<T>::value_type value, const std::tuple<Args...> &args,
            std::error_code *ec)
        : pending<T>(std::move(value)), args_(args), ec_(ec)
    {
        this->finish = [](pending<T> *self) {
            std::exchange(static_cast<awaiter *>(self)->waiter_, nullptr).resume();
        };
    }

    awaiter(const awaiter &) = delete;
    awaiter &operator=(const awaiter &) = delete;

    ~awaiter()
    {
        if (waiter_)
            std::terminate(); /* the coroutine is destroyed while it waits */
    }

    bool await_ready() const noexcept
    {
        return false;
    }

    /* The coroutine may go on, and end, in another thread before `begin` has returned, so nothing
     * here touches it afterwards. Inlined by clang, the variables of this function would be part of
     * the coroutine (LLVM issue 56301). */
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiter) noexcept
    {
        waiter_ = waiter;
        const int code = begin<T, Call>(args_, static_cast<pending<T> *>(this));
        if (code >= 0)
            return true;
        waiter_ = nullptr;
        drop_items(this->result.value());
        this->result.fail(last_error(code));
        return false;
    }

    T await_resume()
    {
        if (ec_ == nullptr)
            return this->result.get();
        *ec_ = this->result.code();
        if constexpr (!std::is_void_v<T>)
            return std::move(this->result.value());
    }

  private:
    std::tuple<Args...> args_;
    std::error_code *ec_;
    std::coroutine_handle<> waiter_{};
};

#endif

} // namespace detail

/* A call that has not begun. Begun twice, it is two calls. */
template <class T, auto Call, class... Args> class [[nodiscard]] operation
{
  public:
    explicit operation(typename outcome<T>::value_type value, Args... args)
        : value_(std::move(value)), args_(args...)
    {
    }

    /* Begins the call; `done` takes an outcome<T> &, and runs once. A call that does not begin
     * throws, and `done` never runs. */
    template <class Done> void start(Done done) const
    {
        const int code = begin(std::move(done));
        if (code < 0)
            throw error(code, detail::last_error(code));
    }

    template <class Done> void start(Done done, std::error_code &ec) const
    {
        detail::set(ec, begin(std::move(done)));
    }

#if defined(__cpp_impl_coroutine)
    /* co_await gives the value, or throws. */
    auto operator co_await() const
    {
        return detail::awaiter<T, Call, Args...>(value_, args_, nullptr);
    }

    /* co_await gives the value, and sets the code. A call that failed gives an empty value, as no
     * ids; but release_each_async() gives a code for each member, once it has begun. */
    auto redirect_error(std::error_code &ec) const
    {
        return detail::awaiter<T, Call, Args...>(value_, args_, &ec);
    }
#endif

  private:
    template <class Done> int begin(Done done) const
    {
        auto item = std::make_unique<detail::callback<T, Done>>(value_, std::move(done));
        const int code =
            detail::begin<T, Call>(args_, static_cast<detail::pending<T> *>(item.get()));
        if (code >= 0)
            (void)item.release(); /* it may be freed by now */
        return code;
    }

    typename outcome<T>::value_type value_;
    std::tuple<Args...> args_;
};

namespace detail
{

template <class T, auto Call, class... Args> operation<T, Call, Args...> later(Args... args)
{
    return operation<T, Call, Args...>({}, args...);
}

} // namespace detail
} // namespace hirelock

#endif
