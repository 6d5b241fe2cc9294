// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// redsync by its README: one pool, a mutex for each goroutine, all options as they are. Lock gives
// up after 32 tries; it is called again then.
package main

import (
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"hirelock/peers/worker"
)

func lock(mutex *redsync.Mutex) {
	err := mutex.Lock()
	var taken *redsync.ErrTaken
	for errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
		err = mutex.Lock()
	}
	worker.Must(err)
}

func unlock(mutex *redsync.Mutex) {
	_, err := mutex.Unlock()
	worker.Must(err)
}

func main() {
	worker.Main(func(address string) worker.Peer {
		client := redis.NewClient(&redis.Options{Addr: address})
		rs := redsync.New(goredis.NewPool(client))
		return func(name string) worker.Lock {
			mutex := rs.NewMutex(name)
			return worker.Lock{
				Acquire: func() { lock(mutex) },
				Release: func() { unlock(mutex) },
			}
		}
	})
}
