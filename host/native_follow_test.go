package host_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// Kinds of writes of stores.wat.
const (
	writeByte = iota
	writeI32
	writeI64
	writeF64
	writeV128
	writeOffset
	writeAtomic
	writeFill
	writeCopy
	writeInit
	writeItems
	writeInput
	writeGrow
	writeRandom
)

// storesModule is stores.wat in one instance, put back in some way.
func storesModule(t *testing.T, prepare func(*host.Host)) *host.Module {
	t.Helper()
	h := newHost(t, host.Config{Engine: host.EngineNative})
	host.AlwaysFollow(h)
	if prepare != nil {
		prepare(h)
	}
	m, err := h.Load(t.Context(), host.Spec{Path: wat("stores"), Limits: host.Limits{Instances: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// writes calls the guest with a list of kinds and addresses.
func writes(t *testing.T, m *host.Module, list ...uint32) {
	t.Helper()
	var in []byte
	for _, v := range list {
		in = binary.LittleEndian.AppendUint32(in, v)
	}
	if _, err := m.CallInput(t.Context(), "run", host.Input{Parts: [][]byte{in}, Items: texts{"an item of the caller's"}}); err != nil {
		t.Fatalf("%v: %v", list, err)
	}
}

// sumOf adds the guest's memory up.
func sumOf(t *testing.T, m *host.Module) []byte {
	t.Helper()
	out, err := m.Call(t.Context(), "sum", nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNative_follow writes in every way to all kinds of places: each call finds the memory as the first one did.
func TestNative_follow(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*host.Host){
		"followed": nil, "unfollowed": host.DoNotFollow,
		"portable":            func(h *host.Host) { _ = host.UsePortableMemory(h) },
		"portable unfollowed": func(h *host.Host) { _ = host.UsePortableMemory(h); host.DoNotFollow(h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := storesModule(t, prepare)
			want := sumOf(t, m)
			rng := rand.New(rand.NewPCG(5, 6))
			seen := false
			for round := range 3000 {
				// Few kinds and near places first, so that windows are opened; then everything.
				kinds, places := uint32(writeAtomic), uint32(3000)
				switch round / 100 % 10 {
				case 7:
					kinds = writeItems
				case 8:
					kinds, places = writeRandom+1, 260_000
				case 9:
					kinds, places = writeGrow, 260_000
				}
				var list []uint32
				for range rng.IntN(6) {
					list = append(list, rng.Uint32N(kinds), 131_072+rng.Uint32N(places))
				}
				writes(t, m, list...)
				if got := sumOf(t, m); !bytes.Equal(got, want) {
					t.Fatalf("round %d, after %v: % x, want % x", round, list, got, want)
				}
				on, served, _ := host.Following(m)
				seen = seen || on && served > 20
			}
			if follows := name == "followed" || name == "portable"; seen != follows {
				t.Errorf("writes were followed: %t", seen)
			}
		})
	}
}

// TestNative_followWindows: windows open where a guest writes, close while that is in vain, and get smaller again.
func TestNative_followWindows(t *testing.T) {
	t.Parallel()
	m := storesModule(t, nil)
	state := func(step string, wantOn bool, minServed, maxSize int) {
		t.Helper()
		if on, served, size := host.Following(m); on != wantOn || served < minServed || size > maxSize {
			t.Errorf("%s: followed %t, %d calls served, windows of %d bytes; want %t, at least %d, at most %d", step, on, served, size, wantOn, minServed, maxSize)
		}
	}
	repeat := func(n int, list ...uint32) {
		t.Helper()
		for range n {
			writes(t, m, list...)
		}
	}
	repeat(10, writeI64, 140_000, writeFill, 150_000)
	state("near writes", true, 8, 32<<10)
	repeat(10, writeI64, 140_000, writeI32, 500)
	state("and a second place", true, 16, 32<<10)
	repeat(10, writeItems, 131_072+500, writeInput, 141_000)
	state("writes of the host in the windows", true, 26, 32<<10)
	writes(t, m, writeRandom, 140_000)
	state("a write of the host that nobody sees", false, 0, 64<<10)
	repeat(64, writeRandom, 140_000)
	writes(t, m, writeRandom, 140_000)
	state("and again, after 64 calls", false, 0, 64<<10)
	repeat(3*64, writeI64, 140_000)
	state("quiet again", true, 50, 32<<10)
	for at := range uint32(12) {
		writes(t, m, writeI64, 20_000*at)
	}
	state("everywhere", false, 0, 256<<10)
	repeat(300, writeI64, 140_000)
	state("near again", true, 50, 32<<10)
	for at := range uint32(10) {
		writes(t, m, writeI64, 132_000+4096*at)
	}
	state("a wider window", true, 50, 48<<10)
	if _, _, size := host.Following(m); size < 40_000 {
		t.Errorf("the window has %d bytes", size)
	}
	repeat(5000, writeI64, 140_000)
	state("narrow again", true, 50, 32<<10)
	before := m.Stats().Replaced
	writes(t, m, writeGrow, 0)
	if n := m.Stats().Replaced - before; n != 1 {
		t.Errorf("a memory that grew cost %d instances, want 1", n)
	}
	repeat(10, writeI64, 140_000)
	state("a new instance", true, 8, 32<<10)
}

// TestNative_followSession: a session keeps what a guest writes, wherever that is.
func TestNative_followSession(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Engine: host.EngineNative})
	m, err := h.Load(t.Context(), host.Spec{Path: wat("stores"), Grants: host.Grants{Sticky: true}})
	if err != nil {
		t.Fatal(err)
	}
	fresh := sumOf(t, m)
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	last := fresh
	for at := range uint32(20) {
		in := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, writeI64), at*10_000)
		if _, err := s.Call(t.Context(), "run", in); err != nil {
			t.Fatal(err)
		}
		got, err := s.Call(t.Context(), "sum", nil)
		if err != nil || bytes.Equal(got, last) {
			t.Errorf("the session lost what was written at %d: %v", at*10_000, err)
		}
		last = got
	}
	if got := sumOf(t, m); !bytes.Equal(got, fresh) {
		t.Errorf("a call beside the session finds % x, want % x", got, fresh)
	}
}

// TestNative_followEdges writes around the edges of both windows, in every way.
func TestNative_followEdges(t *testing.T) {
	t.Parallel()
	m := storesModule(t, nil)
	want := sumOf(t, m)
	learn := func() [2][2]int {
		t.Helper()
		for range 2000 { // windows may be closed for as long
			writes(t, m, writeI64, 60_000)
			if on, served, _ := host.Following(m); on && served > 2 {
				break
			}
		}
		at := host.Windows(m)
		if at[0][0] == at[0][1] || at[1][0] == at[1][1] {
			t.Fatalf("windows %v, want two", at)
		}
		return at
	}
	lengths := map[uint32]int{writeOffset: 1004, writeFill: 1500, writeCopy: 30, writeInit: 80, writeItems: 23, writeInput: 8}
	for kind := range uint32(writeGrow) {
		for window := range 2 {
			for edge := range 2 {
				for by := -20; by <= 20; by++ {
					at := learn()[window][edge] + by
					if edge == 1 {
						at -= lengths[kind] * (by & 1) // starts or ends there
					}
					writes(t, m, kind, uint32(max(at, 0)))
					if got := sumOf(t, m); !bytes.Equal(got, want) {
						t.Fatalf("kind %d, %d bytes beside edge %d of window %d: % x, want % x", kind, by, edge, window, got, want)
					}
				}
			}
		}
	}
}

// TestNative_followMany: a call that changes more than is kept, while windows are open.
func TestNative_followMany(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Engine: host.EngineNative})
	host.AlwaysFollow(h)
	m, err := h.Load(t.Context(), host.Spec{Path: wat("pages"), Limits: host.Limits{Instances: 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := sumOf(t, m)
	rng := rand.New(rand.NewPCG(8, 9))
	for range 3 {
		for range 300 {
			if _, err := m.Call(t.Context(), "scatter", nil); err != nil {
				t.Fatal(err)
			}
			if on, served, _ := host.Following(m); on && served > 2 {
				break
			}
		}
		if on, _, _ := host.Following(m); !on {
			t.Fatal("writes are not followed")
		}
		if _, err := m.Call(t.Context(), "scatter", addresses(rng, 1900)); err != nil {
			t.Fatal(err)
		}
		if got := sumOf(t, m); !bytes.Equal(got, want) {
			t.Errorf("% x, want % x", got, want)
		}
	}
}
