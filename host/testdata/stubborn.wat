;; Never ends, in ways that avoid a plain loop.
(module
  (memory (export "memory") 1)
  (type $step (func (param i32) (result i32)))
  (table funcref (elem $even $odd))
  ;; Recursion without a loop, for longer than anyone waits.
  (func $fib (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2)) (then (local.get $n))
      (else (i32.add
        (call $fib (i32.sub (local.get $n) (i32.const 1)))
        (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
  (func (export "fib") (result i32) (call $fib (i32.const 90)))
  ;; A state machine: a loop that only dispatches, with states that jump to each other.
  (func (export "br_table") (result i32) (local $state i32)
    (loop $next
      (block $two (block $one (block $zero
        (br_table $zero $one $two (local.get $state)))
        (local.set $state (i32.const 1)) (br $next))
        (local.set $state (i32.const 2)) (br $next))
      (local.set $state (i32.const 0)) (br $next))
    (unreachable))
  ;; A br_table that goes straight back to the loop's header.
  (func (export "br_table_back") (result i32)
    (loop $next (br_table $next $next (i32.const 7)))
    (unreachable))
  ;; Tail calls neither loop nor grow the stack.
  (func $tail (param $n i32) (result i32) (return_call $tail (i32.add (local.get $n) (i32.const 1))))
  (func (export "tail") (result i32) (call $tail (i32.const 0)))
  (func $even (param $n i32) (result i32) (return_call_indirect (type $step) (local.get $n) (i32.const 1)))
  (func $odd (param $n i32) (result i32) (return_call_indirect (type $step) (local.get $n) (i32.const 0)))
  (func (export "tail_indirect") (result i32) (call $even (i32.const 0)))
  ;; Growing costs nothing when it is refused, says the guest.
  (func (export "grow") (result i32)
    (loop $again (drop (memory.grow (i32.const 65535))) (br $again))
    (unreachable)))
