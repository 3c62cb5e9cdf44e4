package main

import (
	"fmt"
	"strings"
	"testing"

	"limitd/jepsen/lab"
)

func TestTheModeNamesItsReason(t *testing.T) {
	if s := modeOf(nil); !strings.Contains(s, "network namespaces, because") {
		t.Error(s)
	}
	if s := modeOf(fmt.Errorf("%w: nft is not installed", lab.ErrUnable)); !strings.Contains(s, "proxies") || !strings.Contains(s, "nft is not installed") {
		t.Error(s)
	}
}
