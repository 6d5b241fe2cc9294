// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// redsync and bsm/redislock, which do what lines tell them (../README.md). Their settings are their
// own, but that they try again every 50 ms, and as often as they are told.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

const (
	pause      = 50 * time.Millisecond
	serveLease = 30 * time.Second
)

// lock is what one library makes of a name.
type lock interface {
	acquire(tries int) error
	extend(lease time.Duration) error
	holds() bool
	release() error
}

type library func(clients []*redis.Client, name string, lease time.Duration) lock

var libraries = map[string]library{"redsync": newRedsync, "redislock": newRedislock}

// owner has clients of its own, and does one thing after the other.
type owner struct {
	clients []*redis.Client
	make    library
	locks   map[string]lock
	orders  chan func()
}

var said sync.Mutex

func monotonic() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

// give answers; whatever the action returns as an error, or panics with, is its answer.
func give(number string, action func() (any, error)) {
	result := func() (text string) {
		defer func() {
			if problem := recover(); problem != nil {
				text = fmt.Sprintf("! panic: %v", problem)
			}
		}()
		value, err := action()
		if err != nil {
			return fmt.Sprintf("! %T: %v", err, err)
		}
		return fmt.Sprintf("= %v", value)
	}()
	said.Lock()
	defer said.Unlock()
	fmt.Printf("%s %d %s\n", number, monotonic(), strings.ReplaceAll(result, "\n", " "))
}

func milliseconds(word string) time.Duration {
	ms, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(ms) * time.Millisecond
}

func open(library string, urls string) *owner {
	if libraries[library] == nil {
		panic("there is no " + library)
	}
	o := &owner{make: libraries[library], locks: map[string]lock{}, orders: make(chan func(), 64)}
	for _, url := range strings.Split(urls, ",") {
		options, err := redis.ParseURL(url)
		if err != nil {
			panic(err)
		}
		options.ContextTimeoutEnabled = true // a library's own timeout is one of the request, too
		options.MaxRetries = -1
		o.clients = append(o.clients, redis.NewClient(options))
	}
	go func() {
		for order := range o.orders {
			order()
		}
	}()
	return o
}

func (o *owner) do(method string, words []string) (any, error) {
	name := words[0]
	switch method {
	case "acquire":
		tries, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, err
		}
		o.locks[name] = o.make(o.clients, name, milliseconds(words[1]))
		return true, o.locks[name].acquire(tries)
	case "extend":
		return true, o.locks[name].extend(milliseconds(words[1]))
	case "holds":
		return o.locks[name].holds(), nil
	case "release":
		return "-", o.locks[name].release()
	case "serve":
		return serve(o, words[0], words[1], words[2], milliseconds(words[3]))
	}
	return nil, fmt.Errorf("there is no %s", method)
}

var owners = map[string]*owner{}

func manage(order string, words []string) (any, error) {
	switch order {
	case "open":
		owners[words[0]] = open(words[1], words[2])
	case "closeAll":
		for who, o := range owners {
			close(o.orders)
			for _, client := range o.clients {
				client.Close()
			}
			delete(owners, who)
		}
	default:
		return nil, fmt.Errorf("there is no %s", order)
	}
	return "-", nil
}

func obey(words []string) {
	number, who, order, rest := words[0], words[1], words[2], words[3:]
	if o := owners[who]; o != nil {
		o.orders <- func() { give(number, func() (any, error) { return o.do(order, rest) }) }
		return
	}
	give(number, func() (any, error) { return manage(order, rest) })
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		obey(strings.Fields(in.Text()))
	}
}
