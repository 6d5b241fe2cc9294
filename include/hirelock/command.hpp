/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Commands of Redis over a client's routes, in C++ (command.h). */
#ifndef HIRELOCK_COMMAND_HPP
#define HIRELOCK_COMMAND_HPP

#include <hirelock/client.hpp>
#include <hirelock/command.h>

#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace hirelock
{

/* A reply, copied: a tree. */
struct reply {
    hl_reply_kind kind = HL_REPLY_NIL;
    std::int64_t integer = 0;
    std::string text{};
    std::vector<reply> elements{};

    reply() = default;

    explicit reply(const hl_reply &raw) : kind(raw.kind), integer(raw.integer)
    {
        if (raw.text != nullptr)
            text.assign(raw.text, raw.length);
        elements.reserve(raw.element_count);
        for (std::size_t i = 0; i < raw.element_count; i++)
            elements.emplace_back(*raw.elements[i]);
    }
};

/* A command (hl_command): command({"HGETALL", "stock"}).key("stock").reads(). One thread at a time
 * uses it. */
class command
{
  public:
    command(std::initializer_list<std::string_view> words) : words_(words.begin(), words.end())
    {
    }

    explicit command(std::vector<std::string> words) : words_(std::move(words))
    {
    }

    /* It changes nothing, and may be sent again. */
    command &reads() noexcept
    {
        raw_.flags |= HL_COMMAND_READS;
        return *this;
    }

    /* It goes to the node that serves this key. */
    command &key(std::string_view key)
    {
        key_ = key;
        has_key_ = true;
        return *this;
    }

    /* It goes to the node of this address (hl_node.address). */
    command &node(std::string_view node)
    {
        node_ = node;
        has_node_ = true;
        return *this;
    }

    template <class Rep, class Period> command &timeout(std::chrono::duration<Rep, Period> time)
    {
        raw_.timeout_ms = detail::span_ms(time);
        return *this;
    }

    /* Valid until the command changes. */
    const hl_command &raw() const
    {
        pointers_.clear();
        lengths_.clear();
        for (const std::string &word : words_) {
            pointers_.push_back(word.c_str());
            lengths_.push_back(word.size());
        }
        raw_.words = pointers_.data();
        raw_.lengths = lengths_.data();
        raw_.word_count = words_.size();
        raw_.key = has_key_ ? key_.c_str() : nullptr;
        raw_.key_length = key_.size();
        raw_.node = has_node_ ? node_.c_str() : nullptr;
        return raw_;
    }

  private:
    std::vector<std::string> words_;
    std::string key_{}, node_{};
    bool has_key_ = false, has_node_ = false;
    mutable std::vector<const char *> pointers_{};
    mutable std::vector<std::size_t> lengths_{};
    mutable hl_command raw_ = HL_COMMAND_INIT;
};

/* For operation: how a command goes to C. */
inline const hl_command *pass(const command &command)
{
    return &command.raw();
}

namespace detail
{

struct reply_deleter {
    void operator()(hl_reply *item) const noexcept
    {
        hl_reply_free(item);
    }
};

template <> struct completion<reply> {
    static void run(int code, const hl_reply *raw, const hl_error *err, void *arg) noexcept
    {
        auto *self = static_cast<pending<reply> *>(arg);
        try {
            if (raw != nullptr)
                self->result.value() = reply(*raw);
        } catch (const std::bad_alloc &) {
            code = HL_ENOMEM;
        }
        self->end(code, err);
    }
};

} // namespace detail

/* hl_client_command. A failure for want of memory after the reply has come is std::bad_alloc. */
inline reply run(client &client, const command &command)
{
    const std::unique_ptr<hl_reply, detail::reply_deleter> raw(
        detail::ask<hl_reply *, hl_client_command>(client.get(), &command.raw()));
    return reply(*raw);
}

inline reply run(client &client, const command &command, std::error_code &ec)
{
    const std::unique_ptr<hl_reply, detail::reply_deleter> raw(
        detail::ask_ec<hl_reply *, hl_client_command>(ec, client.get(), &command.raw()));
    return raw ? reply(*raw) : reply();
}

inline auto run_async(client &client, const command &command)
{
    return detail::later<reply, hl_client_command_async>(client.get(), command);
}

} // namespace hirelock

#endif
