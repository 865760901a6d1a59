;; Calls a function of an embedder while an instance is made.
(module
  (import "mine" "nothing" (func $nothing))
  (memory (export "memory") 1)
  (func $run (call $nothing))
  (start $run)
  (func (export "run") (result i32) (i32.const 0)))
