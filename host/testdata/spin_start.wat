;; Never ends while it is being instantiated.
(module (func $spin (loop $again (br $again))) (start $spin)
  (func (export "run") (result i32) (i32.const 0)))
