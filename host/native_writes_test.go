package host_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/host/hosttest"
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

// storesModule is stores.wat in one instance, on a host that prepare has changed.
func storesModule(t *testing.T, prepare func(*host.Host)) *host.Module {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	if prepare != nil {
		prepare(h)
	}
	m, err := h.Load(t.Context(), host.Spec{Path: wat("stores"), Limits: host.Limits{Instances: 1}, Grants: reads()})
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
	if _, err := m.Call(messages.With(t.Context(), texts{"an item of the caller's"}), "run", in); err != nil {
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

// TestNative_writes writes in every way to all kinds of places: each call finds the memory as the first one did.
func TestNative_writes(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*host.Host){
		"mapped":   nil,
		"blind":    host.UseBlindMemory,
		"portable": func(h *host.Host) { _ = host.UsePortableMemory(h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := storesModule(t, prepare)
			want := sumOf(t, m)
			rng := rand.New(rand.NewPCG(5, 6))
			for round := range 1000 {
				kinds, places := uint32(writeAtomic), uint32(3000)
				switch round / 50 % 10 {
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
			}
		})
	}
}

// TestNative_writesSession: a session keeps what a guest writes, wherever that is.
func TestNative_writesSession(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
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
		t.Errorf("a call outside of the session finds % x, want % x", got, fresh)
	}
}
