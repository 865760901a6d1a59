package host_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind     string
		problems []string
	}{
		"echo":             {"plugin", nil},
		"spin_start":       {"plugin", nil},
		"old_extism":       {"old_extism", []string{"refused: uses the import names that Extism had before 1.0 (env.extism_...)"}},
		"proxy_wasm":       {"proxy_wasm", []string{"refused: is a proxy-wasm filter"}},
		"command":          {"wasi_command", []string{"is a WASI command: it exports _start and no plugin functions"}},
		"no_describe":      {"unknown", []string{"has no function that can be called as a plugin"}},
		"memory_start":     {"plugin", []string{"refused: needs 2000 pages of memory at its start and may use 1024"}},
		"import_signature": {"plugin", []string{"refused: imports extism:host/env.alloc as (i32) -> i32, but it is (i64) -> i64"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := host.Inspect(name, watBytes(t, name))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range in.Problems {
				text := p.Problem
				if p.Err != nil {
					text = "refused: " + text
				}
				if p.Hint == "" {
					t.Errorf("%s: no hint", p.Problem)
				}
				got = append(got, text)
			}
			if in.Kind != tt.kind || strings.Join(got, "\n") != strings.Join(tt.problems, "\n") {
				t.Errorf("%s, %q", in.Kind, got)
			}
			if in.HasStart != (name == "spin_start") || len(in.SHA256) != 64 || in.Size == 0 {
				t.Errorf("%+v", in)
			}
		})
	}
}

func TestInspect_notModules(t *testing.T) {
	t.Parallel()
	in, err := host.Inspect("c", []byte("\x00asm\x0d\x00\x01\x00"))
	if err != nil || in.Kind != "component" || len(in.Problems) != 1 || in.Problems[0].Err == nil {
		t.Errorf("component: %+v, %v", in, err)
	}
	for start, want := range map[string]string{
		"":                                    "is empty; build the module again",
		"#!/bin/sh":                           "is a script, not WebAssembly; give the path of a .wasm binary",
		"\x1f\x8b\x08\x00":                    "is compressed with gzip, not WebAssembly; unpack it first (gunzip)",
		"\x7fELF\x02\x01":                     "is a program or library for Linux, not WebAssembly; build it for wasm32-wasip1",
		"PK\x03\x04":                          "is a zip archive, not WebAssembly; unpack it, and give the path of the .wasm file in it",
		"\n (module)":                         "is WebAssembly in text, not a binary; make a binary of it with wat2wasm",
		"\ufeff<!DOCTYPE html>":               "is a page of HTML or XML, not WebAssembly; look at what was downloaded, and give the path of a .wasm binary",
		"version https://git-lfs.github.com/": "is a pointer of Git LFS, not WebAssembly; fetch the file itself (git lfs pull)",
		"some text\x1b":                       "is not WebAssembly; give the path of a .wasm binary (text has to go through wat2wasm)",
		"\x00as":                              "is cut off at byte 3; copy or build it again",
	} {
		in, err := host.Inspect("x", []byte(start))
		if in != nil || !errors.Is(err, host.ErrNotCore) || err.Error() != `host: module "x" `+want {
			t.Errorf("%q: %+v, %v\nwant %s", start, in, err, want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, name := range []string{"echo", "import_unknown", "memory_import", "table_start", "proc_exit"} {
		f.Add(watBytes(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := host.Inspect("fuzz", b)
		if err != nil {
			if !errors.Is(err, host.ErrNotCore) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q", err.Error())
			}
			return
		}
		for _, p := range in.Problems {
			if p.Problem == "" || p.Hint == "" || strings.ContainsAny(p.Problem+p.Hint, "\n\x1b\x00") {
				t.Fatalf("%q; %q", p.Problem, p.Hint)
			}
		}
	})
}

// TestCacheFormat keeps the name of the cache folder in step with wazero.
func TestCacheFormat(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("../internal/engine/compile/cache.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "github.com/tetratelabs/wazero v")
	version := strings.Fields(rest)[0]
	if !strings.Contains(string(src), `cacheFormat = "v1-wazero`+version+`"`) {
		t.Errorf("cacheFormat does not name wazero %s of go.mod", version)
	}
}
