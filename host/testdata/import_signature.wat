;; Imports a function that is offered with another signature.
(module (import "extism:host/env" "alloc" (func (param i32) (result i32))) (func (export "run") (result i32) (i32.const 0)))
