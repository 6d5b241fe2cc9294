/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The Redlock, and the classic lock of one master, in C++ (redlock.h). A redlock is a mutex. */
#ifndef HIRELOCK_REDLOCK_HPP
#define HIRELOCK_REDLOCK_HPP

#include <hirelock/lock.hpp>
#include <hirelock/redlock.h>

namespace hirelock
{

/* hl_redlock_options; the name is that of the constructor of the redlock. */
class redlock_options
{
  public:
    /* HL_REDLOCK_..., joined by |. */
    redlock_options &flags(unsigned flags) noexcept
    {
        raw_.flags = flags;
        return *this;
    }

    redlock_options &vote_timeout(std::chrono::milliseconds time) noexcept
    {
        raw_.vote_timeout_ms = time.count();
        return *this;
    }

    redlock_options &retry(std::chrono::milliseconds least, std::chrono::milliseconds most) noexcept
    {
        raw_.retry_min_ms = least.count();
        raw_.retry_max_ms = most.count();
        return *this;
    }

    redlock_options &max_lease(std::chrono::milliseconds time) noexcept
    {
        raw_.max_lease_ms = time.count();
        return *this;
    }

    const hl_redlock_options &raw() const noexcept
    {
        return raw_;
    }

  private:
    hl_redlock_options raw_ = HL_REDLOCK_OPTIONS_INIT;
};

class redlock : public mutex
{
  public:
    redlock() noexcept = default;

    /* The clients must outlive the redlock's calls; an array or a vector of clients. */
    template <class Clients> redlock(const Clients &clients, detail::text name)
    {
        const std::vector<hl_client *> items = handles(clients);
        take(detail::ask<hl_lock *, hl_redlock_new>(items.data(), items.size(), name.get()));
    }

    template <class Clients> redlock(const Clients &clients, detail::text name, std::error_code &ec)
    {
        const std::vector<hl_client *> items = handles(clients);
        take(detail::ask_ec<hl_lock *, hl_redlock_new>(ec, items.data(), items.size(), name.get()));
    }

    template <class Clients>
    redlock(const Clients &clients, std::string_view name, const redlock_options &options)
    {
        const std::vector<hl_client *> items = handles(clients);
        const hl_redlock_options raw = named(name, options);
        take(detail::ask<hl_lock *, hl_redlock_new_with>(items.data(), items.size(), &raw));
    }

    template <class Clients>
    redlock(const Clients &clients, std::string_view name, const redlock_options &options,
            std::error_code &ec)
    {
        const std::vector<hl_client *> items = handles(clients);
        const hl_redlock_options raw = named(name, options);
        take(detail::ask_ec<hl_lock *, hl_redlock_new_with>(ec, items.data(), items.size(), &raw));
    }

  private:
    template <class Clients> static std::vector<hl_client *> handles(const Clients &clients)
    {
        std::vector<hl_client *> items;
        for (const client &each : clients)
            items.push_back(each.get());
        return items;
    }

    static hl_redlock_options named(std::string_view name, const redlock_options &options) noexcept
    {
        hl_redlock_options raw = options.raw();
        raw.name = detail::bytes_of(name);
        raw.name_length = name.size();
        return raw;
    }

    void take(hl_lock *lock) noexcept
    {
        static_cast<mutex &>(*this) = mutex(lock);
    }
};

} // namespace hirelock

#endif
