// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// rueidislock by its README, with what that recommends for a single server.
package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"hirelock/peers/worker"
)

func main() {
	worker.Main(func(address string) worker.Peer {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
			KeyMajority:    1,
			NoLoopTracking: true,
		})
		worker.Must(err)
		return func(name string) worker.Lock {
			var release context.CancelFunc
			return worker.Lock{
				Acquire: func() {
					var err error
					_, release, err = locker.WithContext(context.Background(), name)
					worker.Must(err)
				},
				Release: func() { release() },
			}
		}
	})
}
