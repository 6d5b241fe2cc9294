/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Codes, exceptions, and handles that are empty. */
#include "cpp/kit.hpp"
#include "cpp/plugin.hpp"

#include <string>

LAW(errors, compare_to_the_conditions_of_the_standard)
{
    const std::error_code busy = hirelock::errc::busy;
    check(busy == std::errc::device_or_resource_busy && busy.value() == HL_EBUSY);
    check(&busy.category() == &hirelock::category());
    check(std::string(busy.category().name()) == "hirelock");
    check(busy.message() == "held by another owner");
    check(make_error_code(hirelock::errc::timed_out) == std::errc::timed_out);
    check(make_error_code(hirelock::errc::canceled) == std::errc::operation_canceled);
    check(make_error_code(hirelock::errc::no_memory) == std::errc::not_enough_memory);
    check(make_error_code(hirelock::errc::invalid) == std::errc::invalid_argument);
    check(make_error_code(hirelock::errc::deadlock) == std::errc::resource_deadlock_would_occur);
    check(make_error_code(hirelock::errc::not_owner) == std::errc::operation_not_permitted);
    check(make_error_code(hirelock::errc::no_connection) == std::errc::not_connected);
    check(make_error_code(hirelock::errc::protocol) == std::errc::protocol_error);
    check(make_error_code(hirelock::errc::denied) == std::errc::permission_denied);
    check(make_error_code(hirelock::errc::not_supported) == std::errc::not_supported);
    check(make_error_code(hirelock::errc::lost) != std::errc::owner_dead);
}

LAW(errors, of_a_plug_in_are_those_of_the_program)
{
    check(plugin_code() == hirelock::errc::busy);
    check(&plugin_code().category() == &hirelock::category());
}

LAW(errors, have_names_and_classes)
{
    const std::error_code none, foreign = std::make_error_code(std::errc::timed_out);
    check(std::string(hirelock::name(hirelock::errc::lost)) == "HL_ELOST");
    check(std::string(hirelock::name(foreign)) == foreign.category().name());
    check(hirelock::is_outcome(hirelock::errc::lost) && !hirelock::is_outcome(foreign));
    check(hirelock::is_transient(hirelock::errc::no_connection) && !hirelock::is_transient(none));
    check(hirelock::is_in_doubt(hirelock::errc::in_doubt) && !hirelock::is_in_doubt(foreign));
    check(std::string(hirelock::name(HL_EVENT_LOST)) == "lost");
    check(std::string(hirelock::name(HL_EVENT_CHANNELS_DENIED)) == "channels denied");
    check(std::string(hirelock::name(HL_LOG_WARN)) == "warning");
    check(std::string(hirelock::version()) == hl_version());
}

LAW(errors, every_code_of_c_has_an_enumerator)
{
#define IS_THERE(name, value, text, class) check(hirelock::category().message(HL_##name) == (text));
    HL_ERROR_MAP(IS_THERE)
#undef IS_THERE
    check(static_cast<int>(hirelock::errc::exists) == HL_EEXIST);
    check(static_cast<int>(hirelock::errc::missing) == HL_ENOENT);
    check(static_cast<int>(hirelock::errc::server) == HL_ESERVER);
    check(static_cast<int>(hirelock::errc::closed) == HL_ECLOSED);
    check(static_cast<int>(hirelock::errc::forked) == HL_EFORKED);
    check(static_cast<int>(hirelock::errc::too_few_replicas) == HL_EREPLICAS);
}

LAW(errors, say_what_the_library_says)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock:42");
    const std::lock_guard<hirelock::mutex> guard(lock);
    const helper other([&] {
        try {
            (void)lock.acquire(hirelock::acquire_options().wait(0s));
            never("no error");
        } catch (const std::system_error &failure) {
            const auto &mine = dynamic_cast<const hirelock::error &>(failure);
            check(std::string(mine.what()).find("acquire 'stock:42': held by") == 0);
            check(mine.busy().locked && mine.busy().mine && mine.busy().lease_left_ms > 0);
            check(mine.reason().code == HL_EBUSY && mine.code() == hirelock::errc::busy);
            const hirelock::error copy = mine;
            check(std::string(copy.what()) == mine.what());
        }
    });
}

LAW(errors, of_calls_without_an_hl_error_have_a_text)
{
    hirelock::client client(law_url());
    std::string text;
    try {
        client.dispatch();
    } catch (const hirelock::error &failure) {
        text = failure.what();
    }
    check(text.find("HL_CLIENT_DISPATCH") != std::string::npos);
}

LAW(errors, of_an_open_that_fails)
{
    std::error_code ec;
    const hirelock::client none("redis://[", {}, ec);
    check(ec == std::errc::invalid_argument && !none);
    check(code_of([] { hirelock::client("unix:///nowhere/socket"); }) == std::errc::not_connected);
}

LAW(errors, of_handles_that_are_empty)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    const hirelock::mutex moved = std::move(lock);
    check(!lock && moved && lock.name().empty() && moved.name() == "stock");
    check(code_of([&] { lock.lock(); }) == hirelock::errc::invalid);
    check(code_of([&] { lock.try_lock(); }) == hirelock::errc::invalid);
    check(code_of([&] { lock.inspect_async().start([](auto &) {}); }) == hirelock::errc::invalid);
    lock.unlock();
    hirelock::client none;
    check(none.id() == nullptr && none.get() == nullptr);
    check(code_of([&] { none.ping(); }) == hirelock::errc::invalid);
    check(code_of([&] { hirelock::owner of_none(none); }) == hirelock::errc::invalid);
    check(code_of([&] { hirelock::mutex of_none(none, "stock"); }) == hirelock::errc::invalid);
    check(code_of([&] { hirelock::mutex named(client, "", {}); }) == hirelock::errc::invalid);
}

LAW(errors, of_a_closed_client)
{
    hirelock::client client(law_url());
    hirelock::mutex lock(client, "stock");
    hirelock::client moved = std::move(client);
    check(!client && moved);
    std::error_code ec;
    moved.close(ec);
    check(!ec && !moved);
    moved.close(); /* of nothing */
    check(code_of([&] { lock.lock(); }) == hirelock::errc::closed);
    moved = hirelock::client(law_url());
    moved = hirelock::client(law_url());
    moved.ping();
}
