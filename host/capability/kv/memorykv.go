package kv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Memory is a [Store] in memory. It is gone with the process. It is safe for
// concurrent use and needs no closing.
type Memory struct {
	mu     sync.Mutex
	spaces map[string]*memorySpace
}

// memorySpace is one namespace. keys are sorted.
type memorySpace struct {
	keys   []string
	values map[string][]byte
	bytes  int64
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{spaces: map[string]*memorySpace{}} }

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, namespace, key string) (value []byte, found bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.spaces[namespace]
	if !ok {
		return nil, false, nil
	}
	value, found = s.values[key]
	return slices.Clone(value), found, nil
}

// Set implements [Store].
func (m *Memory) Set(ctx context.Context, namespace, key string, value []byte, q Quota) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[namespace]
	if s == nil {
		s = &memorySpace{values: map[string][]byte{}}
	}
	old, there := s.values[key]
	count, size := len(s.keys), s.bytes+int64(len(value))-int64(len(old))
	if !there {
		count++
		size += int64(len(key))
	}
	// What only shrinks is always allowed, so that a space over its quota can be cleared.
	if (!there && count > q.Keys) || (size > s.bytes && size > q.Bytes) {
		return fmt.Errorf("host: key-value space %q: %w: %d keys of %d, %d bytes of %d", namespace, engine.ErrQuota, count, q.Keys, size, q.Bytes)
	}
	m.spaces[namespace] = s
	s.values[key], s.bytes = append([]byte{}, value...), size
	if at, ok := slices.BinarySearch(s.keys, key); !ok {
		s.keys = slices.Insert(s.keys, at, strings.Clone(key))
	}
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, namespace, key string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[namespace]
	if s == nil {
		return false, nil
	}
	at, ok := slices.BinarySearch(s.keys, key)
	if !ok {
		return false, nil
	}
	s.bytes -= int64(len(key) + len(s.values[key]))
	s.keys = slices.Delete(s.keys, at, at+1)
	delete(s.values, key)
	if len(s.keys) == 0 {
		delete(m.spaces, namespace)
	}
	return true, nil
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, namespace, prefix, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[namespace]
	if s == nil {
		return nil, nil
	}
	at, found := slices.BinarySearch(s.keys, max(prefix, after))
	if found && after >= prefix && after != "" {
		at++
	}
	var out []string
	for ; at < len(s.keys) && len(out) < limit && strings.HasPrefix(s.keys[at], prefix); at++ {
		out = append(out, s.keys[at])
	}
	return out, nil
}
