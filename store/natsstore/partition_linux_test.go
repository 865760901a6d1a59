package natsstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
)

const (
	// hubEnv has the prefix of a network's names for the process on its hub.
	hubEnv = "MORTISE_TEST_NATS_HUB"
	// apart is how long a leader is cut off: longer than the 10 s after which it gives up.
	apart = 12 * time.Second
	// late is when everything has arrived that was acknowledged before.
	late = 2 * time.Second
)

// TestPartition cuts off the host of the leader, with the worker on it: the others continue, it acknowledges nothing, and when it is back
// it acknowledges again. The suite of the mailbox kills processes meanwhile and judges in the end.
func TestPartition(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	if prefix := os.Getenv(hubEnv); prefix != "" {
		partition(t, &network{t: t, prefix: prefix})
		return
	}
	if testing.Short() {
		testskip.Skip(t, "no network is partitioned: it takes a minute")
	}
	n := newNetwork(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// On the hub, this test is a process of its own: its children and connections are then in the network, too.
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.hub(), self, "-test.run=^TestPartition$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), hubEnv+"="+n.prefix)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it ends with the thread that starts it
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if err != nil || !strings.Contains(out.String(), "--- PASS: TestPartition") {
		t.Errorf("on the hub: %v", err)
	}
	t.Log(out.String())
}

func partition(t *testing.T, n *network) {
	t.Helper()
	c := startServers(t, n.hosts())
	c.judge(0, func() error {
		if err := c.said.await(someSubmits, c.said.all); err != nil {
			return err
		}
		leader, err := c.leader()
		if err != nil {
			return err
		}
		if err := errors.Join(c.cutOff(n, leader), n.join(leader)); err != nil {
			return err
		}
		joined := time.Now()
		err = c.said.await(1, func() int { return c.said.of(leader) })
		t.Logf("the worker of the host acknowledges again %v after it was connected", time.Since(joined).Round(time.Millisecond))
		return err
	})
}

// cutOff cuts off a host for a while.
func (c *servers) cutOff(n *network, host int) error {
	port := c.ports[host]
	if !n.reaches(host, port) {
		return errors.New("the host is not reached before it is cut off")
	}
	c.said.stalled()
	start, before := time.Now(), c.said.all()
	if err := n.cut(host); err != nil {
		return err
	}
	if n.reaches(host, port) {
		return errors.New("the host is still reached")
	}
	<-time.After(late)
	cut := c.said.of(host)
	if err := c.said.await(1, c.said.all); err != nil {
		return err
	}
	stall := c.said.stalled()
	<-time.After(time.Until(start.Add(apart)))
	if more := c.said.of(host) - cut; more != 0 {
		return fmt.Errorf("the side without a majority acknowledged %d submits", more)
	}
	c.t.Logf("nothing acknowledged for %v; %d submits acknowledged before, %d while the leader was cut off", stall, before, c.said.all()-before)
	return nil
}
