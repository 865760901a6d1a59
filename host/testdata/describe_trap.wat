;; Breaks when it is asked to describe itself, in two ways; works otherwise.
(module
  (memory (export "memory") 1)
  (global $n (mut i32) (i32.const 0))
  (func (export "describe") (result i32)
    (i32.store (i32.const 0) (i32.const 1))
    (global.set $n (i32.const 1))
    (unreachable))
  ;; Refuses with what describe has left behind.
  (func (export "left") (result i32) (i32.or (global.get $n) (i32.load (i32.const 0)))))
