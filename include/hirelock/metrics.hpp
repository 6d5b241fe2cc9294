/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The statistics of clients as text for Prometheus, in C++ (metrics.h). */
#ifndef HIRELOCK_METRICS_HPP
#define HIRELOCK_METRICS_HPP

#include <hirelock/client.hpp>
#include <hirelock/metrics.h>

#include <string>
#include <utility>
#include <vector>

namespace hirelock
{

/* Names and values: {{"client", "orders"}}. */
using labels = std::vector<std::pair<std::string, std::string>>;

/* The clients of one text, each with its labels. A client must live until the text is made. */
class metrics
{
  public:
    metrics &add(const client &client, labels own = {})
    {
        clients_.push_back(client.get());
        labels_.push_back(std::move(own));
        return *this;
    }

    /* hl_metrics_format. */
    std::string text() const
    {
        int code = 0;
        std::string text = format(code);
        if (code < 0)
            throw error(code, detail::last_error(code));
        return text;
    }

    std::string text(std::error_code &ec) const
    {
        int code = 0;
        std::string text = format(code);
        detail::set(ec, code < 0 ? code : 0);
        return text;
    }

  private:
    /* The numbers may grow between two calls, and the text with them. */
    std::string format(int &code) const
    {
        const std::vector<std::vector<hl_label>> raw = raw_labels();
        std::vector<const hl_label *> sets;
        for (const std::vector<hl_label> &set : raw)
            sets.push_back(set.data());
        std::string text;
        for (;;) {
            char *buffer = text.empty() ? nullptr : text.data();
            code = hl_metrics_format(clients_.data(), sets.data(), clients_.size(), buffer,
                                     text.empty() ? 0 : text.size() + 1);
            const auto length = code < 0 ? 0 : static_cast<std::size_t>(code);
            const bool fits = code < 0 || (length > 0 && length <= text.size());
            text.resize(fits ? length : length + room);
            if (fits)
                return text;
        }
    }

    std::vector<std::vector<hl_label>> raw_labels() const
    {
        std::vector<std::vector<hl_label>> raw;
        for (const labels &set : labels_) {
            raw.emplace_back();
            for (const auto &label : set)
                raw.back().push_back({label.first.c_str(), label.second.c_str()});
            raw.back().push_back({nullptr, nullptr});
        }
        return raw;
    }

    static constexpr std::size_t room = 1024;
    std::vector<hl_client *> clients_{};
    std::vector<labels> labels_{};
};

} // namespace hirelock

#endif
