;; Needs a table of 100 million elements before it runs.
(module (table 100000000 funcref) (func (export "run") (result i32) (i32.const 0)))
