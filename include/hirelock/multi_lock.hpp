/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Several locks as one, all or none, in C++ (multi_lock.h). A multi_lock is a mutex, and may be
 * moved into one: mutex both = multi_lock({&first, &second}).
 */
#ifndef HIRELOCK_MULTI_LOCK_HPP
#define HIRELOCK_MULTI_LOCK_HPP

#include <hirelock/lock.hpp>

#include <array>
#include <initializer_list>
#include <iterator>

namespace hirelock
{

class multi_lock : public mutex
{
  public:
    multi_lock() noexcept = default;

    /* The members' handles may end afterwards: multi_lock both({&first, &second}). */
    explicit multi_lock(std::initializer_list<const mutex *> members,
                        const lock_options &options = {})
        : multi_lock(members.begin(), members.end(), options)
    {
    }

    multi_lock(std::initializer_list<const mutex *> members, const lock_options &options,
               std::error_code &ec)
        : multi_lock(members.begin(), members.end(), options, ec)
    {
    }

    /* From pointers to mutexes, of any iterators that go forward. */
    template <class Iterator>
    multi_lock(Iterator first, Iterator last, const lock_options &options = {})
    {
        const std::vector<hl_lock *> members = handles(first, last);
        take(detail::ask<hl_lock *, hl_multi_lock_new>(members.data(), members.size(),
                                                       &options.raw()));
    }

    template <class Iterator>
    multi_lock(Iterator first, Iterator last, const lock_options &options, std::error_code &ec)
    {
        const std::vector<hl_lock *> members = handles(first, last);
        take(detail::ask_ec<hl_lock *, hl_multi_lock_new>(ec, members.data(), members.size(),
                                                          &options.raw()));
    }

    /* hl_multi_lock_release_each, for the calling thread or an owner. It throws or sets the gravest
     * code; with a code it also returns one for each member, in the order in which they were
     * given, and none without a multi-lock. */
    void release_each()
    {
        release_codes(nullptr);
    }

    std::vector<std::error_code> release_each(std::error_code &ec)
    {
        return release_codes(nullptr, ec);
    }

    void release_each(const owner &owner)
    {
        release_codes(owner.get());
    }

    std::vector<std::error_code> release_each(const owner &owner, std::error_code &ec)
    {
        return release_codes(owner.get(), ec);
    }

    /* The values are codes of error.h. */
    auto release_each_async(const owner &owner)
    {
        return operation<std::vector<int>, hl_multi_lock_release_each_async, hl_lock *, hl_owner *>(
            std::vector<int>(most_members), get(), owner.get());
    }

  private:
    template <class Iterator> static std::vector<hl_lock *> handles(Iterator first, Iterator last)
    {
        std::vector<hl_lock *> members;
        members.reserve(static_cast<std::size_t>(std::distance(first, last)));
        for (; first != last; ++first)
            members.push_back((*first)->get());
        return members;
    }

    void take(hl_lock *lock) noexcept
    {
        static_cast<mutex &>(*this) = mutex(lock);
    }

    void release_codes(hl_owner *owner)
    {
        std::array<int, most_members> codes{};
        detail::run<hl_multi_lock_release_each>(get(), owner, codes.data());
    }

    std::vector<std::error_code> release_codes(hl_owner *owner, std::error_code &ec)
    {
        std::vector<std::error_code> results(most_members);
        std::array<int, most_members> codes{};
        codes.fill(no_member);
        detail::run_ec<hl_multi_lock_release_each>(ec, get(), owner, codes.data());
        std::size_t count = 0;
        for (; count < codes.size() && codes[count] != no_member; count++)
            detail::set(results[count], codes[count]);
        results.resize(count);
        return results;
    }

    /* How many members there are is known to the handle alone, which may come and go as that of a
     * mutex. So there is room for as many codes as hl_multi_lock_new allows, and the codes that are
     * written are those of the members. */
    static constexpr std::size_t most_members = 100;
    static constexpr int no_member = 1; /* no code is positive */
};

} // namespace hirelock

#endif
