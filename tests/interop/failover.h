/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The laws of C and Redisson while another server becomes the master of what they hold. */
#ifndef HL_INTEROP_FAILOVER_H
#define HL_INTEROP_FAILOVER_H

/* Redisson's waiters subscribe at the new master of a failover, nearly always. At that of a slot
 * that has moved they do not (4.7.0, sharded messages): they ask again when the lease is over that
 * they have seen, and their client cannot wait for the name any more. */
enum ear_of_java { HEARS_BEHIND_IT, DEAF_BEHIND_IT };

/* C holds what Java waits for, and Java what C waits for, both at `server`. change() ends when
 * another server is the master of both names. */
void law_new_master(void (*change)(void), enum ear_of_java ear);

#endif
