package state

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// DefaultLimit is how large a value may be when its key says nothing: 256 KiB.
const DefaultLimit = 256 << 10

// Key declares a value. It must not change once a store knows it.
type Key struct {
	// Name is unique in a store; plugins' keys are "<plugin>/<key>".
	Name  string
	Scope abi.Scope // run when empty
	Merge abi.Merge // exclusive when empty
	// Limit is the size of the value in bytes, [DefaultLimit] when 0. Sizes are
	// those of text and names, plus a little for each value.
	Limit int

	Native
}

// Native is what only a key of native code can have.
type Native struct {
	// Reduce replaces the operations of the contract, except set. Nil means that
	// the key has those. A key of a guest never has one.
	Reduce Reduce
	// Decode checks a value that comes from an export, and may turn an old form
	// into the present one. A value that it refuses is hidden and kept. Nil takes all.
	Decode func(any) (any, error)
	// Transient values are never exported.
	Transient bool
	// Retain keeps the value when the key's owner is uninstalled.
	Retain bool
}

// Reduce returns what an update makes of a value, nil being nothing there. It
// must be a function of its arguments, leave them as they are, and be quick: it may
// run while other commits wait. The result must be a dynamic value of the
// contract. A panic counts as an error of the update.
type Reduce func(old any, op abi.Op, operand any) (any, error)

// Shared reports whether an operation on the key goes together with others of the
// same kind, so that no order among them loses one.
func (k *Key) Shared(op abi.Op) bool {
	return k.Merge == abi.MergeCommutative && op != abi.OpSet
}

// Takes reports whether the key has the operation.
func (k *Key) Takes(op abi.Op) error {
	switch op {
	case abi.OpSet, abi.OpMerge, abi.OpAppend, abi.OpAdd, abi.OpRemove:
		return nil
	default:
		if k.Reduce != nil && op != "" {
			return nil
		}
		return fmt.Errorf("operation %.40q is not one of set, merge, append, add, remove", op)
	}
}

// apply returns the value after an update. Neither the old value nor the operand
// is changed. Without the panic a reducer could leave a commit half done.
func (k *Key) apply(old any, op abi.Op, operand any) (value any, err error) {
	if k.Reduce == nil || op == abi.OpSet {
		if value, err = operate(op, old, operand); err != nil {
			return nil, err
		}
		if op == abi.OpSet || op == abi.OpRemove {
			return value, nil
		}
		m := meter{left: k.limit()}
		return value, k.tooLarge(m.measure(value, 0))
	}
	defer func() {
		if v := recover(); v != nil {
			value, err = nil, fmt.Errorf("the key's reducer panicked: %.512v", v)
		}
	}()
	if value, err = k.Reduce(old, op, operand); err != nil {
		return nil, err
	}
	m := meter{left: k.limit()}
	value, err = m.clone(value)
	return value, k.tooLarge(err)
}

func (k *Key) limit() int { return cmp.Or(k.Limit, DefaultLimit) }

func (k *Key) tooLarge(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, errTooDeep) {
		return fmt.Errorf("the value would be larger than the %d bytes that are allowed, or too deep", k.limit())
	}
	return err
}

func (k *Key) thread() bool { return k.Scope == abi.ScopeThread }

func (k *Key) check() error {
	if k.Name == "" {
		return errors.New("state: a key has no name")
	}
	switch k.Scope {
	case "", abi.ScopeRun, abi.ScopeThread:
	default:
		return fmt.Errorf("state: key %q: scope %q is not one of run, thread", k.Name, k.Scope)
	}
	switch k.Merge {
	case "", abi.MergeExclusive, abi.MergeCommutative:
	default:
		return fmt.Errorf("state: key %q: merge %q is not one of exclusive, commutative", k.Name, k.Merge)
	}
	if k.Limit < 0 {
		return fmt.Errorf("state: key %q: limit is %d, must not be negative", k.Name, k.Limit)
	}
	return nil
}
