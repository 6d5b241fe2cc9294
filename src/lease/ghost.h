/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Ghosts: fields of this client's that a late command has put into Redis, and nobody holds. */
#ifndef HLI_LEASE_GHOST_H
#define HLI_LEASE_GHOST_H

#include "lease/turn.h"

/* A busy answer has named the holder. Name mutex. */
void hli_ghost_look(struct hli_turn *turn);

#endif
