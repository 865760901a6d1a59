package natsstore_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// network is three hosts and a hub that joins them, each a network namespace with the process in its name. Outside of them it does not
// exist, and its addresses are those that are reserved for documentation.
type network struct {
	t      *testing.T
	prefix string
}

const (
	netPrefix = "mortise-nats-"
	bridge    = "br0"
)

// newNetwork makes a network and removes it with the test. Machines that do not permit it skip the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		testskip.Missing(t, "no network is partitioned: ip is not installed (Debian: apt-get install iproute2)")
	}
	n := &network{t: t, prefix: fmt.Sprint(netPrefix, os.Getpid())}
	n.sweep()
	if out, err := ip("netns", "add", n.hub()); err != nil {
		testskip.Skip(t, "no network is partitioned: this machine makes no network namespace (root can): %v: %s", err, out)
	}
	t.Cleanup(func() { n.remove(n.hub()) })
	n.must("-n", n.hub(), "link", "set", "lo", "up")
	n.must("-n", n.hub(), "link", "add", bridge, "type", "bridge")
	n.must("-n", n.hub(), "addr", "add", "192.0.2.1/24", "dev", bridge)
	n.must("-n", n.hub(), "link", "set", bridge, "up")
	for i := range nodes {
		n.must("netns", "add", n.host(i))
		t.Cleanup(func() { n.remove(n.host(i)) })
		n.must("link", "add", n.port(i), "netns", n.hub(), "type", "veth", "peer", "name", "eth0", "netns", n.host(i))
		n.must("-n", n.host(i), "addr", "add", n.address(i)+"/24", "dev", "eth0")
		n.must("-n", n.host(i), "link", "set", "lo", "up")
		n.must("-n", n.host(i), "link", "set", "eth0", "up")
		n.must("-n", n.hub(), "link", "set", n.port(i), "master", bridge, "up")
	}
	return n
}

func (n *network) hub() string { return n.prefix + "-hub" }

func (n *network) host(i int) string { return fmt.Sprint(n.prefix, "-", i) }

func (n *network) port(i int) string { return fmt.Sprint("port", i) }

func (n *network) address(i int) string { return fmt.Sprint("192.0.2.", 10+i) }

// hosts are where a cluster has its servers.
func (n *network) hosts() (list []host) {
	for i := range nodes {
		list = append(list, host{address: n.address(i), via: []string{"ip", "netns", "exec", n.host(i)}})
	}
	return list
}

// cut disconnects a host, join connects it again.
func (n *network) cut(i int) error { return n.plug(i, "nomaster") }

func (n *network) join(i int) error { return n.plug(i, "master", bridge) }

func (n *network) plug(i int, words ...string) error {
	out, err := ip(append([]string{"-n", n.hub(), "link", "set", n.port(i)}, words...)...)
	if err != nil {
		return fmt.Errorf("host %d: %w: %s", i, err, out)
	}
	return nil
}

// reaches reports whether the hub, where this process is, reaches a host.
func (n *network) reaches(i, port int) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(n.address(i), strconv.Itoa(port)), 2*time.Second)
	if err == nil {
		_ = conn.Close() // it was made
	}
	return err == nil
}

// sweep removes what tests left that were killed.
func (n *network) sweep() {
	list, _ := filepath.Glob("/run/netns/" + netPrefix + "*-*") // the pattern is right
	for _, path := range list {
		name := filepath.Base(path)
		process, _, _ := strings.Cut(strings.TrimPrefix(name, netPrefix), "-")
		if _, err := os.Stat("/proc/" + process); errors.Is(err, os.ErrNotExist) {
			n.remove(name)
		}
	}
}

func (n *network) remove(name string) {
	if out, err := ip("netns", "del", name); err != nil {
		n.t.Errorf("namespace %s stays: %v: %s", name, err, out)
	}
}

func (n *network) must(words ...string) {
	n.t.Helper()
	if out, err := ip(words...); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
	}
}

func ip(words ...string) (string, error) {
	out, err := exec.Command("ip", words...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
