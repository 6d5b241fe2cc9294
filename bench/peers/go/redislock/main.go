// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// bsm/redislock by its example of a retry: every 100 ms, here without end. It has no renewal of
// its own; the lease is long enough for every hold.
package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"hirelock/peers/worker"
)

const lease = 10 * time.Minute // a wait ends with it as well, unless the context has a deadline

func main() {
	ctx := context.Background()
	worker.Main(func(address string) worker.Peer {
		locker := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
		return func(name string) worker.Lock {
			var held *redislock.Lock
			return worker.Lock{
				Acquire: func() {
					var err error
					retry := redislock.LinearBackoff(100 * time.Millisecond)
					held, err = locker.Obtain(ctx, name, lease, &redislock.Options{RetryStrategy: retry})
					worker.Must(err)
				},
				Release: func() { worker.Must(held.Release(ctx)) },
			}
		}
	})
}
