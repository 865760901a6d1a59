module github.com/mortise-dev/mortise/sdk/go

go 1.24
