// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// redsync by its README: a pool for each server, a mutex for each goroutine, all options as they are. Lock gives
// up after 32 tries; it is called again then.
package main

import (
	"errors"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
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
	worker.Main(func(string) worker.Peer {
		var pools []pool.Pool
		for _, address := range worker.Masters() {
			client := redis.NewClient(&redis.Options{Addr: address})
			pools = append(pools, goredis.NewPool(client))
		}
		rs := redsync.New(pools...)
		return func(name string) worker.Lock {
			mutex := rs.NewMutex(name)
			return worker.Lock{
				Acquire: func() { lock(mutex) },
				Release: func() { unlock(mutex) },
			}
		}
	})
}
