module github.com/mortise-dev/mortise/examples/plugins/jsonfix

go 1.26.0

require github.com/mortise-dev/mortise/sdk/go v0.0.0

replace github.com/mortise-dev/mortise/sdk/go => ../../../sdk/go
