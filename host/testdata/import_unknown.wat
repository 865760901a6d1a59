;; Wants a function that nobody offers.
(module (import "env" "launch_\1b[31m" (func)) (func (export "run") (result i32) (i32.const 0)))
