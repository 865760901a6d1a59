package frame_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook/frame"
)

func TestFrames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	hello := &frame.Hello{Proto: 1, Client: "c", Dialect: "claude", Event: "PreToolUse", Cwd: "/w é", DeadlineMS: 5000, Headless: true}
	reply := &frame.Reply{Status: frame.StatusOK, Exit: 3, Stdout: []byte("{}")}
	if err := errors.Join(frame.Write(&b, hello.Marshal()), reply.Write(&b)); err != nil {
		t.Fatal(err)
	}
	h, err := frame.ReadHello(&b)
	if err != nil || !reflect.DeepEqual(h, hello) {
		t.Errorf("%+v, %v", h, err)
	}
	r, err := frame.ReadReply(&b)
	if err != nil || !reflect.DeepEqual(r, reply) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := frame.Read(strings.NewReader("\xff\xff\xff\xff"), 100); !errors.Is(err, frame.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if _, err := frame.Read(strings.NewReader("\x00\x00\x00\x09short"), 100); err == nil {
		t.Error("a frame that is cut was read")
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	p := &frame.Policy{
		Daemon: []string{"/opt/mortise", "hook", "daemon"}, Env: []string{"TOKEN"},
		Rules: []frame.Rule{{Dialect: "claude", Event: "Stop", Stdout: "{}"}, {Dialect: "claude", Event: "PreToolUse", Closed: true, Stdout: "{\"a\":\"\t\n\\\"\"}"}},
	}
	got, err := frame.ParsePolicy(append(p.Marshal(), "\"later\"\t\"version\"\n"...))
	if err != nil || !reflect.DeepEqual(got.Daemon, p.Daemon) || !reflect.DeepEqual(got.Env, p.Env) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range p.Rules {
		if r, ok := got.Rule(want.Dialect, want.Event); !ok || r != want {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	if _, ok := got.Rule("claude", "Other"); ok {
		t.Error("there is no such rule")
	}
	if again, err := frame.ParsePolicy(got.Marshal()); err != nil || len(again.Marshal()) != len(p.Marshal()) {
		t.Errorf("written again: %v", err)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	if got, err := frame.SocketPath("/state/abc"); err != nil || got != "/state/abc/socket" {
		t.Error(got, err)
	}
	if got, err := frame.SocketPath("/" + strings.Repeat("x", 100)); err == nil || !strings.Contains(err.Error(), "--profile") {
		t.Error(got, err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "own"), 0o700), os.Symlink(filepath.Join(dir, "own"), link)); err != nil {
		t.Fatal(err)
	}
	if err := frame.CheckFolder(filepath.Join(dir, "own")); err != nil {
		t.Error(err)
	}
	if err := frame.CheckFolder(link); !errors.Is(err, frame.ErrForeign) {
		t.Errorf("a link: %v", err)
	}
}

// FuzzRead: any input is an error or a value.
func FuzzRead(f *testing.F) {
	h := frame.Hello{Proto: 1, Dialect: "d"}
	var b bytes.Buffer
	_ = frame.Write(&b, h.Marshal())
	f.Add(b.Bytes())
	f.Add((&frame.Policy{Rules: []frame.Rule{{Dialect: "d", Event: "e"}}}).Marshal())
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := frame.ReadHello(bytes.NewReader(data)); err == nil && h.DeadlineMS < 0 {
			t.Error("a deadline in the past")
		}
		_, _ = frame.ReadReply(bytes.NewReader(data))
		if p, err := frame.ParsePolicy(data); err == nil {
			p.Rule("d", "e")
		}
	})
}
