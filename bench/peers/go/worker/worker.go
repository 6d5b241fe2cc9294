// SPDX-FileCopyrightText: hirelock contributors
// SPDX-License-Identifier: MIT

// Package worker is one client process of the peers' benchmark. It speaks the driver's protocol
// (README.md) and knows nothing of the lock that it acquires and releases.
package worker

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is what one goroutine acquires and releases.
type Lock struct {
	Acquire, Release func()
}

// Peer makes the locks of one process, one for each goroutine.
type Peer func(name string) Lock

const grace = 2 * time.Second

// hold is one line of the log, in ns of CLOCK_MONOTONIC.
type hold struct {
	Thread, Asked, Held, LetGo, Freed int64
}

type flow struct {
	number int
	lock   Lock
	mu     sync.Mutex // nobody else wants it before the end
	holds  []hold
}

var (
	port    = flag.Int("port", 0, "the server's port on loopback")
	masters = flag.String("masters", "", "the ports of several masters, with commas")
	name    = flag.String("name", "", "the lock's name")
	logFile = flag.String("log", "", "where the log goes")
	kind    = flag.String("scenario", "loop", "loop or rounds")
	threads = flag.Int("threads", 1, "goroutines")
	warmMs  = flag.Int64("warm-ms", 0, "time to warm up alone")
	length  = flag.Int64("length-ms", 0, "time to run")
	holdUs  = flag.Int64("hold-us", 0, "how long each hold lasts")
	phaseUs = flag.Int64("phase-us", 0, "rounds: each hold lasts up to so long")

	epoch, epochNs = monotonic()
)

// The runtime's own clock is CLOCK_MONOTONIC too, but hides its zero.
func monotonic() (time.Time, int64) {
	var at unix.Timespec
	Must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &at))
	return time.Now(), at.Nano()
}

func now() int64 {
	return epochNs + int64(time.Since(epoch))
}

func sleepUntil(due int64) {
	time.Sleep(time.Duration(due - now()))
}

// Must ends the process when what the benchmark relies on does not hold.
func Must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func (f *flow) hold(length time.Duration, tell bool) {
	h := hold{Thread: int64(f.number), Asked: now()}
	f.lock.Acquire()
	h.Held = now()
	if tell {
		fmt.Println("held")
	}
	if length > 0 {
		time.Sleep(length)
	}
	h.LetGo = now()
	f.lock.Release()
	h.Freed = now()
	f.mu.Lock()
	f.holds = append(f.holds, h)
	f.mu.Unlock()
}

func (f *flow) loop(start int64) {
	sleepUntil(start)
	for end := start + *length*1e6; now() < end; {
		f.hold(time.Duration(*holdUs)*time.Microsecond, false)
	}
}

func (f *flow) rounds(in *bufio.Scanner) {
	fmt.Println("rounds")
	for in.Scan() { // "go"
		f.hold(time.Duration(rand.Int63n(*phaseUs*1000)), true)
	}
}

func warm(peer Peer) {
	lock := peer(fmt.Sprintf("%s:warm:%d", *name, os.Getpid()))
	for end := now() + *warmMs*1e6; now() < end; {
		lock.Acquire()
		lock.Release()
	}
}

func write(flows []*flow) {
	file, err := os.Create(*logFile)
	Must(err)
	out := bufio.NewWriter(file)
	for _, f := range flows {
		f.mu.Lock()
		Must(binary.Write(out, binary.NativeEndian, f.holds))
		f.mu.Unlock()
	}
	Must(out.Flush())
	Must(file.Close())
}

// wait leaves behind who is still waiting a while after the end; that hold is missing in the log.
func wait(ended *atomic.Int32, end int64) {
	sleepUntil(end)
	for int(ended.Load()) < *threads && (*kind == "rounds" || now() < end+int64(grace)) {
		time.Sleep(10 * time.Millisecond)
	}
}

// Masters gives the addresses of several masters, for a peer that locks them; or the one server's.
func Masters() []string {
	ports := []string{strconv.Itoa(*port)}
	if *masters != "" {
		ports = strings.Split(*masters, ",")
	}
	var addresses []string
	for _, port := range ports {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	return addresses
}

// Main runs one worker: open gets the server's address.
func Main(open func(address string) Peer) {
	flag.Parse()
	peer := open("127.0.0.1:" + strconv.Itoa(*port))
	warm(peer)
	var flows []*flow
	for i := 0; i < *threads; i++ {
		flows = append(flows, &flow{number: i, lock: peer(*name)})
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	start, err := strconv.ParseInt(strings.TrimSpace(in.Text()), 10, 64)
	Must(err)
	var ended atomic.Int32
	for _, f := range flows {
		go func() {
			f.loop(start)
			if *kind == "rounds" {
				f.rounds(in)
			}
			ended.Add(1)
		}()
	}
	wait(&ended, start+*length*1e6)
	write(flows)
}
