/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The result codes of hirelock in C++: an error category, and the exception hirelock::error.
 *
 * A call that may fail has two forms. The first one throws hirelock::error. The second one takes a
 * std::error_code & as its last argument and sets it, to no error as well; the text of the failure
 * and the holder of a busy lock are in the exception only. docs/cpp.md explains the binding, and
 * names the calls that have the first form only.
 *
 * Threads: any; a std::error_code and an error are plain values.
 */
#ifndef HIRELOCK_ERROR_HPP
#define HIRELOCK_ERROR_HPP

#include <hirelock/error.h>

#include <string>
#include <system_error>

namespace hirelock
{

/* The codes of error.h. Later versions add codes; handle those that you do not know by their class
 * (is_outcome). */
enum class errc {
    busy = HL_EBUSY,
    timed_out = HL_ETIMEDOUT,
    canceled = HL_ECANCELED,
    not_owner = HL_ENOTOWNER,
    lost = HL_ELOST,
    in_doubt = HL_EINDOUBT,
    fenced = HL_EFENCED,
    exists = HL_EEXIST,
    missing = HL_ENOENT,
    invalid = HL_EINVAL,
    no_memory = HL_ENOMEM,
    no_connection = HL_ECONN,
    protocol = HL_EPROTO,
    server = HL_ESERVER,
    denied = HL_EDENIED,
    closed = HL_ECLOSED,
    deadlock = HL_EDEADLK,
    forked = HL_EFORKED,
    not_supported = HL_ENOTSUP,
    too_few_replicas = HL_EREPLICAS
};

} // namespace hirelock

template <> struct std::is_error_code_enum<hirelock::errc> : std::true_type {
};

namespace hirelock
{
namespace detail
{

class HL_API category_type final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "hirelock";
    }

    std::string message(int code) const override
    {
        return code == 0 ? "success" : hl_err_text(code);
    }

    /* So a code compares equal to its condition: code == std::errc::timed_out. The codes without a
     * condition that means the same (lost, in doubt, fenced ...) are compared to errc only. */
    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (code) {
        case HL_EBUSY:
            return std::errc::device_or_resource_busy;
        case HL_ETIMEDOUT:
            return std::errc::timed_out;
        case HL_ECANCELED:
            return std::errc::operation_canceled;
        case HL_ENOTOWNER:
            return std::errc::operation_not_permitted;
        case HL_EINVAL:
            return std::errc::invalid_argument;
        case HL_ENOMEM:
            return std::errc::not_enough_memory;
        case HL_ECONN:
            return std::errc::not_connected;
        case HL_EPROTO:
            return std::errc::protocol_error;
        case HL_EDENIED:
            return std::errc::permission_denied;
        case HL_EDEADLK:
            return std::errc::resource_deadlock_would_occur;
        case HL_ENOTSUP:
            return std::errc::not_supported;
        default:
            return {code, *this};
        }
    }
};

} // namespace detail

/* The category of all codes of this library, "hirelock": one for all shared objects of a program,
 * also of those that hide their symbols. */
HL_API inline const std::error_category &category() noexcept
{
    static const detail::category_type instance;
    return instance;
}

inline std::error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), category()};
}

/* The name of a code, "HL_EBUSY"; of a code of another category, that category's. */
inline const char *name(const std::error_code &code) noexcept
{
    return code.category() == category() ? hl_err_name(code.value()) : code.category().name();
}

/* hl_err_is_outcome; false for codes of another category, as with the next two. */
inline bool is_outcome(const std::error_code &code) noexcept
{
    return code.category() == category() && hl_err_is_outcome(code.value());
}

/* hl_err_is_transient: the call may be repeated after a pause. */
inline bool is_transient(const std::error_code &code) noexcept
{
    return code.category() == category() && hl_err_is_transient(code.value());
}

/* hl_err_is_in_doubt: the call may have taken effect, or may still. */
inline bool is_in_doubt(const std::error_code &code) noexcept
{
    return code.category() == category() && hl_err_is_in_doubt(code.value());
}

/* hl_version: the version of the library that is loaded, "0.1.0". */
inline const char *version() noexcept
{
    return hl_version();
}

/* What a failed call throws. Its what() is the text of hl_error alone, "acquire 'stock:42': connect
 * 10.0.0.3:6379: connection refused". */
class error : public std::system_error
{
  public:
    error(int code, const hl_error &reason)
        : std::system_error(code, hirelock::category()), reason_(reason)
    {
    }

    const char *what() const noexcept override
    {
        return reason_.text[0] != '\0' ? reason_.text : hl_err_text(code().value());
    }

    /* The holder, when the code is busy or timed_out (hl_error.busy). */
    const hl_lock_info &busy() const noexcept
    {
        return reason_.busy;
    }

    const hl_error &reason() const noexcept
    {
        return reason_;
    }

  private:
    hl_error reason_;
};

namespace detail
{

/* The error of this thread's last failed call that takes no hl_error. */
inline hl_error last_error(int code) noexcept
{
    hl_error reason = HL_ERROR_INIT;
    if (hl_err_last()->code == code)
        reason = *hl_err_last();
    reason.code = code;
    return reason;
}

inline void set(std::error_code &ec, int code) noexcept
{
    ec.assign(code < 0 ? code : 0, category());
}

/* run: a call whose last parameter is its hl_error. ask: a call that returns a T before that.
 * run_bare: a call without an hl_error. Each returns what the C call returned, or the T. */
template <auto Call, class... Args> int run(Args... args)
{
    hl_error reason = HL_ERROR_INIT;
    const int code = Call(args..., &reason);
    if (code < 0)
        throw error(code, reason);
    return code;
}

template <auto Call, class... Args> int run_ec(std::error_code &ec, Args... args) noexcept
{
    const int code = Call(args..., nullptr);
    set(ec, code);
    return code;
}

template <class T, auto Call, class... Args> T ask(Args... args)
{
    T value{};
    run<Call>(args..., &value);
    return value;
}

template <class T, auto Call, class... Args> T ask_ec(std::error_code &ec, Args... args) noexcept
{
    T value{};
    run_ec<Call>(ec, args..., &value);
    return value;
}

template <auto Call, class... Args> int run_bare(Args... args)
{
    const int code = Call(args...);
    if (code < 0)
        throw error(code, last_error(code));
    return code;
}

template <auto Call, class... Args> int run_bare_ec(std::error_code &ec, Args... args) noexcept
{
    const int code = Call(args...);
    set(ec, code);
    return code;
}

/* got: true; false when it was busy or the time is over. With a code that is set as well. */
template <auto Call, class... Args> bool got(Args... args)
{
    hl_error reason = HL_ERROR_INIT;
    const int code = Call(args..., &reason);
    if (code < 0 && code != HL_EBUSY && code != HL_ETIMEDOUT)
        throw error(code, reason);
    return code == 0;
}

template <auto Call, class... Args> bool got_ec(std::error_code &ec, Args... args) noexcept
{
    return run_ec<Call>(ec, args...) == 0;
}

} // namespace detail
} // namespace hirelock

#endif
