// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT
// Shows each report that the shop sends, and buys. Text of others goes into the page as text only.
"use strict";

const byId = id => document.getElementById(id);

// Elements are kept from report to report, so that focus and selection stay.
function row(parent, key, tag, make) {
  let found = [...parent.children].find(child => child.dataset.key === key);
  if (!found) {
    found = document.createElement(tag);
    found.dataset.key = key;
    make(found);
    parent.append(found);
  }
  return found;
}

function cells(parent, first, count) {
  for (let i = 0; i < count; i++) {
    const cell = document.createElement(i === 0 ? first : "td");
    if (i === 0 && first === "th") cell.scope = "row";
    parent.append(cell);
  }
}

function fill(parent, texts) {
  texts.forEach((text, i) => {
    if (parent.children[i].textContent !== String(text)) parent.children[i].textContent = text;
  });
}

function time(us) {
  return us < 1000 ? `${us} µs` : us < 1e6 ? `${Math.round(us / 1000)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

// "process 123, worker 4, for 25 ms"; the thread is known when the hold is older than 20 ms.
function holder(lock, processes) {
  if (!lock) return "unknown";
  if (!lock.process) return "free";
  const process = processes.find(p => p.id === lock.process);
  const parts = [process ? `process ${process.pid}` : lock.process];
  if (lock.thread) parts.push(lock.thread, `for ${lock.held_ms} ms`);
  if (process && process.state === "gone") parts.push(`which is gone; its lease ends in ${lock.lease_left_ms} ms`);
  return parts.join(", ");
}

function showArticles(report) {
  for (const article of report.articles) {
    const line = row(byId("articles"), article.name, "tr", tr => {
      cells(tr, "th", 5);
      const bar = document.createElement("progress");
      bar.setAttribute("aria-label", `stock of ${article.name}`);
      tr.children[2].append(bar);
    });
    const lock = report.locks.find(l => l.article === article.name);
    line.children[0].textContent = article.name;
    line.children[1].textContent = article.stock;
    const bar = line.children[2].firstChild;
    bar.max = Math.max(article.initial, 1);
    bar.value = Math.max(article.stock, 0);
    line.children[3].textContent = article.sold;
    line.children[4].textContent = holder(lock, report.processes);
    row(byId("article"), article.name, "option", option => {
      option.value = article.name;
      option.textContent = article.name;
    });
  }
}

function showProcesses(report) {
  for (const process of report.processes) {
    const line = row(byId("processes"), process.id, "tr", tr => cells(tr, "th", 9));
    const me = process.id === report.me ? " (this page's)" : "";
    line.dataset.state = process.state;
    fill(line, [`${process.pid} at ${process.address}${me}`, process.state, process.sold,
                process.sold_out, process.tried_again, process.fenced, time(process.p50_us),
                time(process.p99_us), time(process.max_us)]);
  }
}

function showSum(report) {
  for (const name of ["stock", "orders", "refused", "oversold", "astray"])
    byId(name).textContent = report.sum[name];
  for (const name of ["oversold", "astray"])
    byId(name).classList.toggle("bad", report.sum[name] > 0);
}

function showWaits(waits) {
  const most = Math.max(1, ...waits.map(([, count]) => count));
  for (const [below, count] of waits) {
    const line = row(byId("waits"), String(below), "li", li => {
      for (const tag of ["span", "progress", "span"]) li.append(document.createElement(tag));
      li.dataset.below = below;
      li.children[1].setAttribute("aria-hidden", "true");
    });
    fill(line, [`below ${time(below)}`]);
    line.children[1].max = most;
    line.children[1].value = count;
    line.children[2].textContent = count;
  }
  const lines = [...byId("waits").children].sort((a, b) => a.dataset.below - b.dataset.below);
  if (lines.some((line, i) => byId("waits").children[i] !== line)) byId("waits").replaceChildren(...lines);
}

function show(report) {
  byId("problem").hidden = !report.problem;
  byId("problem").textContent = report.problem;
  byId("locked").textContent = report.is_locked ? "on" : "off";
  byId("locked").classList.toggle("bad", !report.is_locked);
  showWaits(report.waits);
  if (!report.sum) return; // no PostgreSQL: what was shown last stays
  showSum(report);
  showArticles(report);
  showProcesses(report);
}

function listen() {
  const events = new EventSource("events");
  events.onopen = () => { byId("connection").textContent = "live"; };
  events.onerror = () => {
    byId("connection").textContent = "not connected; what is shown is old";
    // The browser tries again by itself after a lost connection, but not after a refusal.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
  events.onmessage = event => show(JSON.parse(event.data));
}

function newOrder() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "page-" + [...bytes].map(byte => byte.toString(16).padStart(2, "0")).join("");
}

// With the same id as often as needed: an order that came through is not made twice.
async function buy(order) {
  for (let i = 0; i < 5; i++) {
    try {
      const response = await fetch("buy", {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(order)});
      const answer = await response.json();
      if (response.status !== 503) return answer.answer || answer.error;
    } catch (e) { /* the connection is lost: was it sold? The next answer says it. */ }
    await new Promise(done => setTimeout(done, 500 << i));
  }
  return "no answer; the shop is out of reach";
}

byId("buy").addEventListener("submit", async event => {
  event.preventDefault();
  const order = {order: newOrder(), article: byId("article").value,
                 quantity: Number(byId("quantity").value)};
  byId("answer").textContent = "...";
  byId("answer").textContent = `${order.quantity} × ${order.article}: ${await buy(order)}`;
});

listen();
