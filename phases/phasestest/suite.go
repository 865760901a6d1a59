package phasestest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// deadline is how long the suite gives a hook. It is generous: it is there to
// find hooks that hang, not slow ones.
const deadline = 10 * time.Second

// TestPlugin checks that a plugin keeps the contract of phases.Plugin: its
// description is valid and always the same; it answers every phase it subscribes
// to, with a reply that is accepted; it leaves events as they are; it answers the same
// event twice with the same reply; its actions and effects answer any payload, with
// an error or not; and it returns when its context is cancelled.
// Open returns the plugin, ready for use, each time it is called; open may
// register a cleanup with the test that calls TestPlugin.
func TestPlugin(t *testing.T, open func() phases.Plugin) {
	t.Helper()
	t.Run("description", func(t *testing.T) {
		t.Parallel()
		testDescription(t, open())
	})
	t.Run("accepted", func(t *testing.T) {
		t.Parallel()
		testAccepted(t, open())
	})
	t.Run("event_untouched", func(t *testing.T) {
		t.Parallel()
		each(t, open(), func(t *testing.T, p phases.Plugin, e *abi.Event) {
			before := copyValue(reflect.ValueOf(*e)).Interface()
			_, _ = ask(t.Context(), t, p, e)
			if !reflect.DeepEqual(before, *e) {
				t.Errorf("%s: the plugin changed the event", e.Phase)
			}
		})
	})
	t.Run("same_reply", func(t *testing.T) {
		t.Parallel()
		other := open()
		each(t, open(), func(t *testing.T, p phases.Plugin, e *abi.Event) {
			first, err1 := ask(t.Context(), t, p, e)
			second, err2 := ask(t.Context(), t, p, e)
			third, err3 := ask(t.Context(), t, other, e)
			if (err1 == nil) != (err2 == nil) || (err1 == nil) != (err3 == nil) {
				t.Errorf("%s: the same event gave the errors %v, %v and %v", e.Phase, err1, err2, err3)
			}
			if !sameReply(first, second) || !sameReply(first, third) {
				t.Errorf("%s: the same event gave different replies:\n%+v\n%+v\n%+v", e.Phase, first, second, third)
			}
		})
	})
	t.Run("handlers", func(t *testing.T) {
		t.Parallel()
		p := open()
		for _, payload := range []any{nil, "text", int64(1), []any{map[string]any{}}} {
			askHandlers(t, p, payload)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		each(t, open(), func(t *testing.T, p phases.Plugin, e *abi.Event) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = ask(ctx, t, p, e) // any answer will do, as long as there is one
		})
	})
}

func testDescription(t *testing.T, p phases.Plugin) {
	first, second := p.Describe(), p.Describe()
	if !reflect.DeepEqual(first, second) {
		t.Errorf("two descriptions differ:\n%+v\n%+v", first, second)
	}
	if len(first.Hooks)+len(first.Actions)+len(first.Effects) == 0 {
		t.Error("the plugin subscribes to nothing")
	}
	if _, err := phases.New(phases.Config{Plugins: []phases.Plugin{p}}); err != nil {
		t.Error(err)
	}
}

// testAccepted plays a small run and expects no failure and no refusal.
func testAccepted(t *testing.T, p phases.Plugin) {
	recorder := &Recorder{}
	r, err := phases.New(phases.Config{Plugins: []phases.Plugin{p}, HookTimeout: deadline, Record: recorder.Record})
	if err != nil {
		t.Fatal(err)
	}
	state := r.NewState(nil)
	for _, phase := range abi.Phases() {
		if _, err := r.Fire(t.Context(), state, Frame(phase)); err != nil {
			t.Error(err)
		}
	}
	for _, rec := range recorder.Records() {
		if rec.Err != "" {
			t.Errorf("%s: %s", rec.Phase, rec.Err)
		}
		for _, refusal := range rec.Refused {
			t.Errorf("%s: refused %s: %s", rec.Phase, refusal.What, refusal.Reason)
		}
	}
}

func each(t *testing.T, p phases.Plugin, check func(*testing.T, phases.Plugin, *abi.Event)) {
	for _, h := range p.Describe().Hooks {
		check(t, p, event(h))
	}
}

// ask calls the plugin and fails the test if it does not answer in time or
// panics.
func ask(ctx context.Context, t *testing.T, p phases.Plugin, e *abi.Event) (*abi.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	type answer struct {
		reply    *abi.Reply
		err      error
		panicked any
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			a.panicked = recover()
			answers <- a
		}()
		a.reply, a.err = p.OnPhase(ctx, e)
	}()
	timer := time.NewTimer(deadline + time.Second)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.panicked != nil {
			t.Errorf("%s: the plugin panicked: %v", e.Phase, a.panicked)
		}
		return a.reply, a.err
	case <-timer.C:
		t.Fatalf("%s: no answer after %v", e.Phase, deadline)
		return nil, nil
	}
}

// sameReply takes nil and the zero reply for the same: no opinion.
func sameReply(a, b *abi.Reply) bool {
	var zero abi.Reply
	if a == nil {
		a = &zero
	}
	if b == nil {
		b = &zero
	}
	return reflect.DeepEqual(a, b)
}

// copyValue copies an event all the way down.
func copyValue(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copyValue(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(copyValue(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(copyValue(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, copyValue(v.MapIndex(k)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				panic(fmt.Sprintf("phasestest: %s has unexported fields", v.Type()))
			}
			out.Field(i).Set(copyValue(v.Field(i)))
		}
	default:
		out.Set(v)
	}
	return out
}
