;; Needs 2,000 pages before it runs.
(module (memory 2000) (func (export "run") (result i32) (i32.const 0)))
