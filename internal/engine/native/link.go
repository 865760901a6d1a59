package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// nativeLink is a linked module of a program.
type nativeLink struct {
	engine.Linked
	nativeCode
}

// link makes the linked modules, each complete before the next one is made.
func (i *nativeInstance) link(ctx context.Context) error {
	for n := range i.prog.linked {
		l := &i.prog.linked[n]
		if err := i.linkOne(ctx, l); err != nil {
			if f, ok := errors.AsType[*engine.Fault](err); ok {
				f.Detail = fmt.Sprintf("link %q: %s", engine.Clean(l.Name, engine.MaxName), f.Detail)
			}
			return err
		}
	}
	return nil
}

func (i *nativeInstance) linkOne(ctx context.Context, l *nativeLink) error {
	i.mems.next = &guestMemories{kind: i.prog.memory, fixed: shared(l.Parsed)}
	i.mems.links = append(i.mems.links, i.mems.next)
	m, err := i.module(ctx, l.code)
	if err != nil {
		return err
	}
	i.links = append(i.links, m)
	if err := i.bindCounter(m, l.meter.Counter); err != nil {
		return err
	}
	return i.initialise(ctx, m, l.meter, l.Parsed)
}

// memoryOf is the memory of the module that calls the host.
func (i *nativeInstance) memoryOf(m api.Module) []byte {
	if len(i.links) > 0 {
		if n := slices.Index(i.links, m); n >= 0 {
			return i.mems.links[n].bytes()
		}
	}
	return i.memory()
}

// memoryBound is how large a list in memory can be. A link may have more than the
// main module.
func (i *nativeInstance) memoryBound() int {
	if len(i.links) > 0 {
		return i.prog.Limits.MemoryPages * wasm.PageSize
	}
	return len(i.memory())
}

func shared(m *wasm.Module) bool {
	return slices.ContainsFunc(m.Memories, func(l wasm.Limits) bool { return l.Shared })
}
