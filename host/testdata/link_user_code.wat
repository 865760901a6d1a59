;; What link_user imports. go-sdk finds the function by its name in the name section.
(module (func $code (export "code") (result i32) (i32.const 41)))
