package state

import (
	"hash/maphash"
	"math/bits"
)

const (
	trieBits  = 5
	trieMask  = 1<<trieBits - 1
	trieDepth = 60 // bits of the hash that are used; below it equal hashes are chained
)

// trie is a persistent map: set and remove return a new one, which shares all but
// one path with the old one.
type trie struct {
	seed maphash.Seed
	root *node
	size int
}

// node has a slot for each bit of its bitmap.
type node struct {
	bitmap uint32
	slots  []slot
}

// slot holds a node or a chain of leaves.
type slot struct {
	node *node
	leaf *leaf
}

type leaf struct {
	hash uint64
	key  string
	entry
	next *leaf
}

func newTrie() trie { return trie{seed: maphash.MakeSeed(), root: &node{}} }

func (t trie) get(key string) (entry, bool) {
	h := maphash.String(t.seed, key)
	n := t.root
	for shift := uint(0); ; shift += trieBits {
		bit := uint32(1) << (h >> shift & trieMask)
		if n.bitmap&bit == 0 {
			return entry{}, false
		}
		s := n.slots[n.at(bit)]
		if s.node != nil {
			n = s.node
			continue
		}
		l := s.leaf.find(key)
		if l == nil {
			return entry{}, false
		}
		return l.entry, true
	}
}

func (t trie) set(key string, e entry) trie {
	if _, ok := t.get(key); !ok {
		t.size++
	}
	t.root = t.root.with(&leaf{hash: maphash.String(t.seed, key), key: key, entry: e}, 0)
	return t
}

func (t trie) remove(key string) trie {
	if _, ok := t.get(key); !ok {
		return t
	}
	t.size--
	t.root = t.root.without(maphash.String(t.seed, key), key, 0)
	return t
}

// all calls yield for each entry, in no particular order.
func (t trie) all(yield func(string, entry) bool) { t.root.each(yield) }

// at is the place of a bit's slot.
func (n *node) at(bit uint32) int { return bits.OnesCount32(n.bitmap & (bit - 1)) }

func (n *node) with(l *leaf, shift uint) *node {
	bit := uint32(1) << (l.hash >> shift & trieMask)
	at := n.at(bit)
	if n.bitmap&bit == 0 {
		out := &node{bitmap: n.bitmap | bit, slots: make([]slot, 0, len(n.slots)+1)}
		out.slots = append(append(append(out.slots, n.slots[:at]...), slot{leaf: l}), n.slots[at:]...)
		return out
	}
	out := &node{bitmap: n.bitmap, slots: append([]slot(nil), n.slots...)}
	old := n.slots[at]
	switch {
	case old.node != nil:
		out.slots[at].node = old.node.with(l, shift+trieBits)
	case old.leaf.find(l.key) != nil || shift+trieBits >= trieDepth:
		l.next = old.leaf.drop(l.key)
		out.slots[at].leaf = l
	default:
		// Two keys share the slot: a level deeper for both. Only at the last level
		// is a leaf a chain, so the old one is alone.
		deeper := (&node{}).with(&leaf{hash: old.leaf.hash, key: old.leaf.key, entry: old.leaf.entry}, shift+trieBits)
		out.slots[at] = slot{node: deeper.with(l, shift+trieBits)}
	}
	return out
}

// without returns the node without a key that it has. Nodes that become empty
// stay: the store's keys are few and come back.
func (n *node) without(h uint64, key string, shift uint) *node {
	bit := uint32(1) << (h >> shift & trieMask)
	at := n.at(bit)
	old := n.slots[at]
	if old.node == nil {
		if rest := old.leaf.drop(key); rest != nil {
			out := &node{bitmap: n.bitmap, slots: append([]slot(nil), n.slots...)}
			out.slots[at].leaf = rest
			return out
		}
		out := &node{bitmap: n.bitmap &^ bit, slots: make([]slot, 0, len(n.slots)-1)}
		out.slots = append(append(out.slots, n.slots[:at]...), n.slots[at+1:]...)
		return out
	}
	out := &node{bitmap: n.bitmap, slots: append([]slot(nil), n.slots...)}
	out.slots[at].node = old.node.without(h, key, shift+trieBits)
	return out
}

func (n *node) each(yield func(string, entry) bool) bool {
	for _, s := range n.slots {
		if s.node != nil {
			if !s.node.each(yield) {
				return false
			}
			continue
		}
		for l := s.leaf; l != nil; l = l.next {
			if !yield(l.key, l.entry) {
				return false
			}
		}
	}
	return true
}

func (l *leaf) find(key string) *leaf {
	for ; l != nil; l = l.next {
		if l.key == key {
			return l
		}
	}
	return nil
}

// drop returns the chain without a key.
func (l *leaf) drop(key string) *leaf {
	var out *leaf
	for ; l != nil; l = l.next {
		if l.key != key {
			out = &leaf{hash: l.hash, key: l.key, entry: l.entry, next: out}
		}
	}
	return out
}
