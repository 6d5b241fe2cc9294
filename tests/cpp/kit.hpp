/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Helpers of the laws of the binding. */
#ifndef HL_TEST_CPP_KIT_HPP
#define HL_TEST_CPP_KIT_HPP

#include <hirelock/hirelock.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cpp/laws.h"

using namespace std::chrono_literals;

/* A thread that is joined. */
class helper
{
  public:
    template <class Body> explicit helper(Body body) : thread_(std::move(body))
    {
    }

    helper(const helper &) = delete;
    helper &operator=(const helper &) = delete;

    ~helper()
    {
        thread_.join();
    }

  private:
    std::thread thread_;
};

/* What callbacks report, by counting. */
class counter
{
  public:
    void add()
    {
        /* The lock is held during the notice, since a waiter may end the counter. */
        const std::lock_guard<std::mutex> guard(mutex_);
        count_++;
        changed_.notify_all();
    }

    int count()
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        return count_;
    }

    /* Until it is `count`, or the wait is given up. */
    bool wait(int count)
    {
        std::unique_lock<std::mutex> guard(mutex_);
        const auto longest = std::chrono::milliseconds(law_slow_ms(60000));
        return changed_.wait_for(guard, longest, [&] { return count_ >= count; });
    }

  private:
    std::mutex mutex_{};
    std::condition_variable changed_{};
    int count_ = 0;
};

/* The code with which a call fails, or that it does not. */
template <class Call> std::error_code code_of(Call call)
{
    try {
        call();
    } catch (const hirelock::error &failure) {
        return failure.code();
    }
    return {};
}

/* Calls `act` with the n-th allocation of this thread failing, n = 0, 1, 2 ..., until none fails;
 * `act` returns true when it has met no want of memory. Returns how often it did not. */
template <class Act> long short_of_memory(Act act)
{
    long failed = 0;
    for (;; failed++) {
        failing_malloc_arm(FAILING_THREAD, failed);
        const bool is_complete = act();
        const bool was_met = failing_malloc_disarm();
        check(is_complete != was_met);
        if (!was_met)
            return failed;
    }
}

/* So many calls of a client wait. */
inline bool wait_for_waiters(const hirelock::client &client, std::uint64_t count)
{
    const struct deadline deadline = deadline_of_wait(60000);
    while (client.stats().waiters_now != count) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

#endif
