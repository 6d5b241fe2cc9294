// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var background = context.Background()

// A mutex of redsync has its lease and its tries from the beginning, so each acquire and each
// extension is that of a new one with the same value.
type redsyncLock struct {
	sync  *redsync.Redsync
	name  string
	lease time.Duration
	mutex *redsync.Mutex
}

func newRedsync(clients []*redis.Client, name string, lease time.Duration) lock {
	var pools []redsyncredis.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	return &redsyncLock{sync: redsync.New(pools...), name: name, lease: lease}
}

func (l *redsyncLock) acquire(tries int) error {
	l.mutex = l.sync.NewMutex(l.name, redsync.WithExpiry(l.lease), redsync.WithTries(tries),
		redsync.WithRetryDelay(pause))
	return l.mutex.Lock()
}

func (l *redsyncLock) extend(lease time.Duration) error {
	longer := l.sync.NewMutex(l.name, redsync.WithExpiry(lease), redsync.WithValue(l.mutex.Value()))
	done, err := longer.Extend()
	if err == nil && !done {
		return redsync.ErrExtendFailed
	}
	if err == nil {
		l.mutex = longer
	}
	return err
}

func (l *redsyncLock) holds() bool {
	return time.Now().Before(l.mutex.Until())
}

func (l *redsyncLock) release() error {
	done, err := l.mutex.Unlock()
	if err == nil && !done {
		return errors.New("redsync: not unlocked")
	}
	return err
}

type redislockLock struct {
	client *redislock.Client
	name   string
	lease  time.Duration
	held   *redislock.Lock
}

func newRedislock(clients []*redis.Client, name string, lease time.Duration) lock {
	return &redislockLock{client: redislock.New(clients[0]), name: name, lease: lease}
}

// A wait ends with the lease, unless its context has a deadline.
func (l *redislockLock) acquire(tries int) error {
	ctx, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	retry := redislock.LimitRetry(redislock.LinearBackoff(pause), tries-1)
	held, err := l.client.Obtain(ctx, l.name, l.lease, &redislock.Options{RetryStrategy: retry})
	l.held = held
	return err
}

func (l *redislockLock) extend(lease time.Duration) error {
	return l.held.Refresh(background, lease, nil)
}

func (l *redislockLock) holds() bool {
	left, err := l.held.TTL(background)
	return err == nil && left > 0
}

func (l *redislockLock) release() error {
	return l.held.Release(background)
}
