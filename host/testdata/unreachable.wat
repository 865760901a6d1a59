;; Traps two calls deep; another export works.
(module (func $inner (unreachable)) (func $run (export "run") (result i32) (call $inner) (i32.const 0))
  (func (export "ok") (result i32) (i32.const 0)))
