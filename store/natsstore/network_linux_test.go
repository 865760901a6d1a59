package natsstore_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// network is three hosts and a hub that joins them, each a network namespace with the process in its name. Nothing of it
// is seen outside, and its addresses are those that are set aside for documentation.
type network struct {
	t      *testing.T
	prefix string
}

const (
	netPrefix = "mortise-nats-"
	hubHost   = "192.0.2.1"
	bridge    = "br0"
	// namespaces is where ip keeps them.
	namespaces = "/run/netns/"
)

// newNetwork makes a network, and takes it down with the test. Machines that do not let it skip the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("ip is not installed, and CI is to partition a network")
		}
		testskip.Skip(t, "no network is partitioned: ip is not installed (Debian: apt-get install iproute2)")
	}
	n := &network{t: t, prefix: fmt.Sprint(netPrefix, os.Getpid())}
	n.sweep()
	if out, err := ip(t, "netns", "add", n.hub()); err != nil {
		testskip.Skip(t, "no network is partitioned: this machine makes no network namespace (root can): %v: %s", err, out)
	}
	t.Cleanup(func() { n.remove(n.hub()) })
	n.must("-n", n.hub(), "link", "add", bridge, "type", "bridge")
	n.must("-n", n.hub(), "addr", "add", hubHost+"/24", "dev", bridge)
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

// cut takes the plug of a host out, join puts it in again.
func (n *network) cut(i int) { n.must("-n", n.hub(), "link", "set", n.port(i), "nomaster") }

func (n *network) join(i int) { n.must("-n", n.hub(), "link", "set", n.port(i), "master", bridge) }

// place is where a cluster has a node on each host, and the test is on the hub.
func (n *network) place() (p place) {
	for i := range nodes {
		p.hosts[i], p.via[i] = n.address(i), []string{"ip", "netns", "exec", n.host(i)}
	}
	p.options = []nats.Option{nats.SetCustomDialer(n)}
	return p
}

// Dial connects from the hub.
func (n *network) Dial(kind, address string) (net.Conn, error) {
	return inside(n.hub()).Dial(kind, address)
}

// inside is a namespace from which to connect: a socket stays in the one in which it was made.
type inside string

// Dial implements nats.CustomDialer.
func (in inside) Dial(kind, address string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	here, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := os.Open(namespaces + string(in))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err = net.DialTimeout(kind, address, 2*time.Second)
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		return nil, errors.Join(err, back) // the thread stays locked, and ends with this goroutine
	}
	runtime.UnlockOSThread()
	return conn, err
}

// reaches says whether a host is reached from the hub.
func (n *network) reaches(i, port int) bool {
	conn, err := n.Dial("tcp", net.JoinHostPort(n.address(i), strconv.Itoa(port)))
	if err == nil {
		_ = conn.Close() // it was made
	}
	return err == nil
}

// sweep removes what tests left that were killed.
func (n *network) sweep() {
	list, _ := filepath.Glob(namespaces + netPrefix + "*-*") // the pattern is right
	for _, path := range list {
		name := filepath.Base(path)
		process, _, _ := strings.Cut(strings.TrimPrefix(name, netPrefix), "-")
		if _, err := os.Stat("/proc/" + process); errors.Is(err, os.ErrNotExist) {
			n.remove(name)
		}
	}
}

func (n *network) remove(name string) {
	if out, err := ip(n.t, "netns", "del", name); err != nil {
		n.t.Errorf("namespace %s stays: %v: %s", name, err, out)
	}
}

func (n *network) must(words ...string) {
	n.t.Helper()
	if out, err := ip(n.t, words...); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
	}
}

func ip(t *testing.T, words ...string) (string, error) {
	t.Helper()
	out, err := exec.Command("ip", words...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
