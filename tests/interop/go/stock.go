// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// stock is a number that is counted up by reading it and writing one more.
type stock struct {
	client         *redis.Client
	number, writer string

	turns, handovers int
	longest          time.Duration
}

func (s *stock) count() error {
	was, err := s.client.MGet(background, s.number, s.writer).Result()
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(was[0].(string))
	if err != nil {
		return err
	}
	s.turns++
	if was[1] == "c" {
		s.handovers++
	}
	return s.client.MSet(background, s.number, number+1, s.writer, "go").Err()
}

func (s *stock) turn(l lock) error {
	asked := time.Now()
	for l.acquire(1000) != nil {
		if time.Since(asked) > time.Minute {
			return fmt.Errorf("not acquired within a minute")
		}
	}
	s.longest = max(s.longest, time.Since(asked))
	if err := s.count(); err != nil {
		return err
	}
	return l.release()
}

// serve gives "TURNS HANDOVERS LONGEST_WAIT_MS", where a handover is a turn after the other side's.
func serve(o *owner, name, number, writer string, length time.Duration) (any, error) {
	s := &stock{client: o.clients[0], number: number, writer: writer}
	l := o.make(o.clients, name, serveLease)
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := s.turn(l); err != nil {
			return nil, err
		}
	}
	return fmt.Sprintf("%d %d %d", s.turns, s.handovers, s.longest.Milliseconds()), nil
}
