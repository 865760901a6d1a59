package host_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// TestImports_lengths calls each import that has a length with 64 MB: the guest must pay in
// proportion or be refused, and a loop over such calls must end with its deadline.
func TestImports_lengths(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	offered := host.Offered()
	table := lengths()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for _, id := range slices.SortedFunc(maps.Keys(offered), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			all, known := table[id[1]]
			if !known {
				t.Errorf("%s.%s is offered, and its lengths are not in the table", id[0], id[1])
			}
			for _, c := range all {
				lengthyCall{e, id, offered[id], c}.test(t)
			}
		}
	})
}

// TestImports_lengths_function does the same for what a function of the embedder moves.
func TestImports_lengths_function(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		lengthyCall{e, [2]string{"extism:host/user", "read_block"}, "(i64) -> ()", lengthy{0, []arg{fill(long)}, charged{}}}.test(t)
		lengthyCall{e, [2]string{"extism:host/user", "read_memory"}, "(i32, i32) -> ()", lengthy{1, []arg{0, long}, charged{}}}.test(t)
		lengthyCall{e, [2]string{"extism:host/user", "write_block"}, "(i32) -> ()", lengthy{0, []arg{long}, charged{}}}.test(t)
	})
}

// TestImports_lengths_table compares the table with what the engine says of WASI, and with
// the kernel.
func TestImports_lengths_table(t *testing.T) {
	t.Parallel()
	offered := host.Offered()
	length := regexp.MustCompile(`(^|_)(len|size)$|^nsubscriptions$`)
	written := []string{"result.argv_len", "result.environv_len"} // where the host writes one
	table := lengths()
	for name, def := range host.WASI() {
		for n, param := range def.ParamNames() {
			covered := slices.ContainsFunc(table[name], func(c lengthy) bool { return c.param == n })
			if length.MatchString(param) && !slices.Contains(written, param) && !covered {
				t.Errorf("%s has the length %s, and the table does not name it", name, param)
			}
		}
	}
	for name := range table {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(offered)), func(id [2]string) bool { return id[1] == name }) {
			t.Errorf("%s is in the table, and is not offered", name)
		}
	}
	bin, err := os.ReadFile(filepath.Join("..", "internal", "engine", "native", "kernel.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := wasm.Parse(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range kernel.Exports {
		if _, ok := offered[[2]string{"extism:host/env", ex.Name}]; !ok && ex.Kind == wasm.KindFunc {
			t.Errorf("the kernel exports %s, which is not among the imports", ex.Name)
		}
	}
}

// lengthyCall is a call of an import on an engine.
type lengthyCall struct {
	engine    string
	id        [2]string
	signature string
	lengthy
}

func (c lengthyCall) test(t *testing.T) {
	t.Helper()
	m := c.load(t, time.Minute)
	if c.engine == hosttest.Native { // the other one counts no fuel
		_, err := m.Call(c.context(t), "once", c.input())
		c.check(t, m, err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	m = c.load(t, 30*time.Millisecond)
	start := time.Now()
	_, err := m.Call(c.context(t), "loop", c.input())
	if _, ok := errors.AsType[*host.TrapError](err); !ok {
		t.Errorf("%s, parameter %d, in a loop: %v", c.id[1], c.param, err)
	}
	// A slice of fuel is enough for thousands of calls, each of which took 20 ms and more.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%s, parameter %d: a loop ended after %v, and the deadline was 30 ms", c.id[1], c.param, took)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// check looks at what became of one call.
func (c lengthyCall) check(t *testing.T, m *host.Module, err error) {
	t.Helper()
	refused, _ := errors.AsType[*host.GuestError](err)
	trap, _ := errors.AsType[*host.TrapError](err)
	switch want := c.want.(type) {
	case charged:
		if fuel := m.Stats().Fuel; fuel < int64(long/64) {
			t.Errorf("%s, parameter %d: %d units for 64 MB, and %v", c.id[1], c.param, fuel, err)
		}
	case trapped:
		if trap == nil || !strings.Contains(trap.Detail, string(want)) {
			t.Errorf("%s, parameter %d: %v, want %s", c.id[1], c.param, err, want)
		}
	case int:
		if refused == nil || int(refused.Code) != want {
			t.Errorf("%s, parameter %d: %v, want code %d", c.id[1], c.param, err, want)
		}
	case stored:
	default:
		t.Errorf("%s, parameter %d: the table has no expected value", c.id[1], c.param)
	}
}

// input is as long as what the guest is to read.
func (c lengthyCall) input() []byte {
	if c.id[1] == "input_read" {
		return make([]byte, long)
	}
	return nil
}

func (c lengthyCall) context(t *testing.T) context.Context {
	t.Helper()
	if c.id[1] == "messages_read" {
		return messages.With(t.Context(), longItem{})
	}
	data := make([]byte, long)
	return messages.WithRange(t.Context(), func(uint32, uint32) ([]byte, error) { return data, nil })
}

// longItem is an item of 64 MB.
type longItem struct{}

func (longItem) Size(uint32, uint32) (int, bool) { return long, true }
func (longItem) Copy(dst []byte, _, _ uint32)    { clear(dst) }

// load loads the guest of the call with all grants.
func (c lengthyCall) load(t *testing.T, timeout time.Duration) *host.Module {
	t.Helper()
	move := func(name string, params []host.ValueType, run func(c *host.Caller, stack []uint64) error) host.Function {
		return host.Function{Name: name, Params: params, Call: func(_ context.Context, c *host.Caller, stack []uint64) error { return run(c, stack) }}
	}
	grants := host.Grants{Clock: true, Config: map[string]string{"k": "v"}, Functions: []host.Function{
		move("read_block", []host.ValueType{host.I64}, func(c *host.Caller, stack []uint64) error {
			_, err := c.Read(stack[0])
			return err
		}),
		move("read_memory", []host.ValueType{host.I32, host.I32}, func(c *host.Caller, stack []uint64) error {
			_, err := c.ReadMemory(uint32(stack[0]), uint32(stack[1])) //nolint:gosec // two i32
			return err
		}),
		move("write_block", []host.ValueType{host.I32}, func(c *host.Caller, stack []uint64) error {
			_, err := c.Write(make([]byte, uint32(stack[0]))) //nolint:gosec // an i32
			return err
		}),
	}, Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory()}, &model.Grant{
		Ask: func(context.Context, []byte) ([]byte, error) { return nil, nil },
		Roles: map[string]model.Role{"r": {WindowTokens: 1 << 20, Answer: func(context.Context, model.Question) (model.Answer, error) {
			return model.Answer{}, nil
		}}},
	}, &http.Grant{Hosts: []string{"granted.test"}}, log.Grant{}, messages.Grant{}}}
	if strings.HasPrefix(c.id[1], "fd_") { // others must be bounded where there are no files, too
		grants.Capabilities = append(grants.Capabilities, &fs.Grant{Mounts: []fs.Mount{{Host: t.TempDir(), Guest: "/", Writable: true}}})
	}
	limits := host.Limits{MemoryPages: 4000, InputBytes: long, OutputBytes: long, Timeout: timeout, Instances: 1}
	m, err := newHost(t, host.Config{Engine: hosttest.Engine(c.engine), Limits: limits}).Load(t.Context(), host.Spec{Name: c.id[1], Wasm: c.guest(), Grants: grants})
	if err != nil {
		t.Fatalf("%s: %v", c.id[1], err)
	}
	return m
}
