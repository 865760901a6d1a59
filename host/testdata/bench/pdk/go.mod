module github.com/mortise-dev/mortise/host/testdata/bench/pdk

go 1.26.0
