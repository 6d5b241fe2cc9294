/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Commands: the words that requests of several kinds have in common, as the client's wording
 * (wording.h) writes them. */
#ifndef HLI_LEASE_STATE_COMMAND_H
#define HLI_LEASE_STATE_COMMAND_H

#include "lease/state/name.h"

/* The beginning of a mailbox's name; the client's id ends it. In a cluster the braced name and a
 * colon stand between them. */
#define HLI_MAILBOX "hirelock:"

/* The lease of a grant until its process renews it: four polls, so that a process that missed the
 * message finds the grant by its next poll; or the watchdog's lease if that is shorter, so that a
 * process that dies blocks others no longer by a grant than by a lease; but at least two polls. */
int64_t hli_command_claim_ms(const hl_client *client);

/* The longest lease that a client with these settings causes of itself: the watchdog's, or that of
 * a grant. A call may ask for a longer one by lease_ms and min_hold_ms, within the bounds of a
 * grace (hli_grace_check) and of a Redlock. */
int64_t hli_lease_longest_ms(const hl_client_options *settings);

/* Begins a script's call with this name as its one key. */
void hli_command_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name);

/* Of a request for a cluster, add a key that the script touches but does not read from KEYS:
 * "prefix{name}", or "{name}suffix". Behind the script's own keys, before other words. */
void hli_command_declare(struct hli_args *args, const struct hli_name *name, const char *prefix);
void hli_command_declare_suffixed(struct hli_args *args, const struct hli_name *name,
                                  const char *suffix);

/* While a slot moves, the server refuses requests that declare a key which is not there, such as an
 * empty queue. Is this such a refusal, of a request that can do with the lock's key alone? Then the
 * name's next requests go alone for a moment: they may be sent at once. */
bool hli_command_goes_alone(struct hli_name *name, const struct hli_answer *refusal, hli_ns now);

/* Does a request that is worded now go alone? It declares the lock's key, and besides only a key
 * that it makes: the old node may still have the others, and would refuse to move a slot whose key
 * was made at the new node, too. So it does not enter the queue. */
bool hli_command_is_alone(const struct hli_name *name);

/* Does no message reach this name's waiters, of a grant or of a release? Then their requests are
 * signs of life. Name mutex. */
bool hli_command_is_deaf(const struct hli_name *name);

/* How long a request is a sign of life. */
int64_t hli_command_sign_ms(const hl_client *client);

/* Adds the words of turns.lua, of an ACQUIRE of a kind whose releases grant to nobody. In a cluster
 * it declares the queue. */
void hli_command_turn(struct hli_args *args, const struct hli_name *name,
                      const struct hli_acquire_request *request);

/* Declares the keys of a hold's renewal. Without its name's mutex. */
void hli_command_declare_renewed(struct hli_args *args, const struct hli_tenure *tenure);

/* Add the next word: the name itself, a key derived by a prefix, the waiters' channel, a tenure's
 * field; the text that makes a mailbox of a client's id. publish: the channel, and the command to
 * publish with. */
void hli_command_name(struct hli_args *args, const struct hli_name *name);
void hli_command_derived(struct hli_args *args, const struct hli_name *name, const char *prefix);
void hli_command_channel(struct hli_args *args, const struct hli_name *name);
void hli_command_publish(struct hli_args *args, const struct hli_name *name);
void hli_command_field(struct hli_args *args, const struct hli_tenure *tenure);
void hli_command_mailbox(struct hli_args *args, const struct hli_name *name);

/* The next word of a force release: the same, of the mailboxes of those who may hold the name, whom
 * it tells to look. "" if none of them hears: in a cluster a client listens to the mailbox of a
 * name that is handed on, and to no other. */
void hli_command_holders_mailbox(struct hli_args *args, const struct hli_name *name);

/* Writes that text of a cluster's client, with a NUL. Returns its length. */
size_t hli_command_write_mailbox(const struct hli_name *name, char text[HLI_CHANNEL_SIZE]);

#endif
