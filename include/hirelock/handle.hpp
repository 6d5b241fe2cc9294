/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What all types of the binding are made of: a handle that is freed once, and times in
 * milliseconds.
 *
 * A handle is moved, never copied. A handle that was moved from is empty: its calls fail with
 * errc::invalid, and get() is NULL.
 */
#ifndef HIRELOCK_HANDLE_HPP
#define HIRELOCK_HANDLE_HPP

#include <hirelock/error.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hirelock
{

/* A wait without end, where a call takes a duration. */
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

namespace detail
{

/* A text that a call reads: a C string, or a std::string, which must outlive the call. One with a
 * NUL inside would be cut, and name something else: it counts as NULL, which the call refuses. */
class text
{
  public:
    text(const char *characters) noexcept : characters_(characters)
    {
    }

    text(const std::string &string) noexcept
        : characters_(string.find('\0') == std::string::npos ? string.c_str() : nullptr)
    {
    }

    const char *get() const noexcept
    {
        return characters_;
    }

  private:
    const char *characters_;
};

inline constexpr std::int64_t longest_ms = INT64_C(100000000000); /* 10^11: lock.h */

/* A time of any unit in milliseconds, rounded away from zero, so that no time becomes the 0 that
 * stands for a default. A time that is too long for the library is longest_ms + 1, which it
 * refuses. */
template <class Rep, class Period>
constexpr std::int64_t span_ms(std::chrono::duration<Rep, Period> span)
{
    using real_ms = std::chrono::duration<long double, std::milli>;
    if (real_ms(span) > real_ms(static_cast<long double>(longest_ms)))
        return longest_ms + 1;
    if (real_ms(span) < -real_ms(static_cast<long double>(longest_ms)))
        return -longest_ms - 1;
    using ms = std::chrono::duration<std::int64_t, std::milli>;
    return (span < span.zero() ? std::chrono::floor<ms>(span) : std::chrono::ceil<ms>(span))
        .count();
}

/* The same of a time to wait: a negative one is no wait, and one that is too long has no end. */
template <class Rep, class Period>
constexpr std::int64_t wait_ms(std::chrono::duration<Rep, Period> wait)
{
    if (!(wait > wait.zero()))
        return 0;
    const std::int64_t ms = span_ms(wait);
    return ms > longest_ms ? -1 : ms;
}

/* How long it is until a point of any clock. Not in the units of the point or the clock: the
 * largest time of one may be more than the other can hold. */
template <class Clock, class Duration>
auto left_until(const std::chrono::time_point<Clock, Duration> &point)
{
    using real = std::chrono::duration<long double, std::nano>;
    return real(point.time_since_epoch()) - real(Clock::now().time_since_epoch());
}

/* Waits until a point of any clock. `call` waits for so many milliseconds, and returns true when
 * it has what it waits for. A clock that was set back meanwhile is looked at again. */
template <class Clock, class Duration, class Call>
bool retry_until(const std::chrono::time_point<Clock, Duration> &point, Call call)
{
    while (!call(wait_ms(left_until(point))))
        if (!(left_until(point).count() > 0))
            return false;
    return true;
}

inline std::chrono::milliseconds to_ms(std::int64_t count)
{
    return std::chrono::milliseconds(count);
}

/* A length of 0 says "a C string" to the library, so an empty view has to be one. */
inline const void *bytes_of(std::string_view text) noexcept
{
    return text.empty() ? "" : text.data();
}

template <class T, void (*Free)(T *)> class handle
{
  public:
    handle() noexcept = default;

    /* Takes over what a call of C returned. */
    explicit handle(T *item) noexcept : item_(item)
    {
    }

    /* For calls of C; the handle keeps it. */
    T *get() const noexcept
    {
        return item_.get();
    }

    explicit operator bool() const noexcept
    {
        return item_ != nullptr;
    }

  protected:
    ~handle() = default;
    handle(handle &&) noexcept = default;
    handle &operator=(handle &&) noexcept = default;

  private:
    struct deleter {
        void operator()(T *item) const noexcept
        {
            Free(item);
        }
    };
    std::unique_ptr<T, deleter> item_{};
};

} // namespace detail
} // namespace hirelock

#endif
