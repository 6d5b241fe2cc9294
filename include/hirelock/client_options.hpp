/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The options of a client (client.h has what each means, and its default), and its callbacks as
 * functions.
 *
 * An exception that leaves a callback ends the program (std::terminate), as one that leaves the
 * function of a std::thread does.
 */
#ifndef HIRELOCK_CLIENT_OPTIONS_HPP
#define HIRELOCK_CLIENT_OPTIONS_HPP

#include <hirelock/client.h>
#include <hirelock/handle.hpp>

#include <functional>
#include <utility>

namespace hirelock
{

/* The login that a callback gives; valid inside the callback. */
class credentials
{
  public:
    explicit credentials(hl_credentials *item) noexcept : item_(item)
    {
    }

    /* hl_credentials_set; `valid` 0: for ever. username NULL: the user "default". */
    void set(const char *username, const char *password, std::chrono::milliseconds valid = {})
    {
        detail::run_bare<hl_credentials_set>(item_, username, password, valid.count());
    }

    void set(const char *username, const char *password, std::chrono::milliseconds valid,
             std::error_code &ec) noexcept
    {
        detail::run_bare_ec<hl_credentials_set>(ec, item_, username, password, valid.count());
    }

    /* hl_credentials_fail: why there is none. */
    void fail(const char *reason)
    {
        detail::run_bare<hl_credentials_fail>(item_, reason);
    }

    void fail(const char *reason, std::error_code &ec) noexcept
    {
        detail::run_bare_ec<hl_credentials_fail>(ec, item_, reason);
    }

  private:
    hl_credentials *item_;
};

using event_function = std::function<void(const hl_event &)>;
using log_function = std::function<void(hl_log_level, const char *text)>;
using credentials_function = std::function<void(const hl_credentials_request &, credentials)>;
using address_function = std::function<void(hl_address &)>;

namespace detail
{

/* The functions of a client, at an address that stays. */
struct callbacks {
    event_function on_event{};
    log_function on_log{};
    credentials_function on_credentials{};
    address_function on_address{};

    bool is_empty() const noexcept
    {
        return !on_event && !on_log && !on_credentials && !on_address;
    }

    /* The functions of C that call those that are there. */
    void enter(hl_client_options &options) noexcept
    {
        options.arg = options.credentials_arg = options.address_map_arg = this;
        if (on_event)
            options.on_event = [](const hl_event *event, void *arg) noexcept {
                static_cast<callbacks *>(arg)->on_event(*event);
            };
        if (on_log)
            options.on_log = [](hl_log_level level, const char *text, void *arg) noexcept {
                static_cast<callbacks *>(arg)->on_log(level, text);
            };
        if (on_credentials)
            options.credentials_cb = [](const hl_credentials_request *request, hl_credentials *item,
                                        void *arg) noexcept {
                static_cast<callbacks *>(arg)->on_credentials(*request, credentials(item));
            };
        if (on_address)
            options.address_map = [](hl_address *address, void *arg) noexcept {
                static_cast<callbacks *>(arg)->on_address(*address);
            };
    }
};

} // namespace detail

/* Texts are not copied before the client is opened. */
class client_options
{
  public:
    /* HL_CLIENT_..., joined by |. */
    client_options &flags(unsigned flags) noexcept
    {
        raw_.flags = flags;
        return *this;
    }

    client_options &login(const char *username, const char *password) noexcept
    {
        raw_.username = username;
        raw_.password = password;
        return *this;
    }

    client_options &password_file(const char *path) noexcept
    {
        raw_.password_file = path;
        return *this;
    }

    client_options &sentinel_login(const char *username, const char *password) noexcept
    {
        raw_.sentinel_username = username;
        raw_.sentinel_password = password;
        return *this;
    }

    client_options &sentinel_password_file(const char *path) noexcept
    {
        raw_.sentinel_password_file = path;
        return *this;
    }

    client_options &client_name(const char *name) noexcept
    {
        raw_.client_name = name;
        return *this;
    }

    client_options &name_prefix(const char *prefix) noexcept
    {
        raw_.name_prefix = prefix;
        return *this;
    }

    client_options &connect_timeout(std::chrono::milliseconds time) noexcept
    {
        raw_.connect_timeout_ms = time.count();
        return *this;
    }

    client_options &request_timeout(std::chrono::milliseconds time) noexcept
    {
        raw_.request_timeout_ms = time.count();
        return *this;
    }

    /* `forever`: calls go on waiting for a server. */
    client_options &outage_timeout(std::chrono::milliseconds time) noexcept
    {
        raw_.outage_timeout_ms = time == forever ? -1 : time.count();
        return *this;
    }

    /* The lease of a hold without a lease time, which the watchdog renews. */
    client_options &watchdog_timeout(std::chrono::milliseconds time) noexcept
    {
        raw_.watchdog_timeout_ms = time.count();
        return *this;
    }

    client_options &poll(std::chrono::milliseconds time) noexcept
    {
        raw_.poll_ms = time.count();
        return *this;
    }

    client_options &backoff(std::chrono::milliseconds least,
                            std::chrono::milliseconds most) noexcept
    {
        raw_.backoff_min_ms = least.count();
        raw_.backoff_max_ms = most.count();
        return *this;
    }

    client_options &busy_poll(std::chrono::microseconds time) noexcept
    {
        raw_.busy_poll_us = time.count();
        return *this;
    }

    client_options &connections(int count) noexcept
    {
        raw_.connections = count;
        return *this;
    }

    /* A number, HL_REPLICAS_MAJORITY or HL_REPLICAS_NONE; how long a WAIT lasts, 0: the default. */
    client_options &min_replicas(int count, std::chrono::milliseconds timeout = {}) noexcept
    {
        raw_.min_replicas = count;
        raw_.replicas_timeout_ms = timeout.count();
        return *this;
    }

    client_options &failover_grace(std::chrono::milliseconds grace,
                                   std::chrono::milliseconds old_master = {}) noexcept
    {
        raw_.failover_grace_ms = grace.count();
        raw_.old_master_ms = old_master.count();
        return *this;
    }

    /* The authorities that sign the server's certificate: a file, or a folder, or NULL. */
    client_options &tls_authorities(const char *file, const char *folder = nullptr) noexcept
    {
        raw_.tls_ca_file = file;
        raw_.tls_ca_dir = folder;
        return *this;
    }

    client_options &tls_certificate(const char *cert_file, const char *key_file) noexcept
    {
        raw_.tls_cert_file = cert_file;
        raw_.tls_key_file = key_file;
        return *this;
    }

    client_options &tls_server_name(const char *name) noexcept
    {
        raw_.tls_server_name = name;
        return *this;
    }

    client_options &sentinel_tls_server_name(const char *name) noexcept
    {
        raw_.sentinel_tls_server_name = name;
        return *this;
    }

    client_options &on_event(event_function function)
    {
        callbacks_.on_event = std::move(function);
        return *this;
    }

    client_options &on_log(log_function function, hl_log_level level = HL_LOG_WARN)
    {
        callbacks_.on_log = std::move(function);
        raw_.log_level = level;
        return *this;
    }

    /* Runs on the thread hirelock-login, and may block (hl_credentials_cb). */
    client_options &on_credentials(credentials_function function)
    {
        callbacks_.on_credentials = std::move(function);
        return *this;
    }

    /* Runs on the thread hirelock-loop, and must not block (hl_address_map_cb). */
    client_options &on_address(address_function function)
    {
        callbacks_.on_address = std::move(function);
        return *this;
    }

    const hl_client_options &raw() const noexcept
    {
        return raw_;
    }

    const detail::callbacks &functions() const noexcept
    {
        return callbacks_;
    }

  private:
    hl_client_options raw_ = HL_CLIENT_OPTIONS_INIT;
    detail::callbacks callbacks_{};
};

} // namespace hirelock

#endif
