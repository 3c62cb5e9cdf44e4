package main

import "testing"

func TestCallsThatWereChargedUnseenAreTheOnlyOnesThatMayMiss(t *testing.T) {
	const limit = 100
	for _, test := range []struct {
		name    string
		t       tally
		hidden  int
		exactly bool
		within  bool
	}{
		{"all of them", tally{allowed: 100, denied: 200}, 0, true, true},
		{"one too many", tally{allowed: 101, denied: 199}, 0, false, false},
		{"one too many, and it was told of a broken connection", tally{allowed: 101, unsure: 5}, 1, false, false},
		{"one lost without a word", tally{allowed: 99, denied: 201}, 0, false, false},
		{"one lost, refused without a charge", tally{allowed: 99, refused: 1}, 0, false, false},
		{"one lost, told", tally{allowed: 99, unsure: 1}, 0, false, true},
		{"two lost, one told", tally{allowed: 98, unsure: 1}, 0, false, false},
		{"two lost, one told, one repeated by the client", tally{allowed: 98, unsure: 1}, 1, false, true},
		{"so many told that anything goes", tally{allowed: 70, unsure: 30}, 0, false, false},
	} {
		if err := test.t.exactly(limit); (err == nil) != test.exactly {
			t.Errorf("%s: exactly says %v", test.name, err)
		}
		if err := test.t.within(limit, test.hidden); (err == nil) != test.within {
			t.Errorf("%s: within says %v", test.name, err)
		}
	}
}

func TestErrorsAreCertainOnlyIfTheySaySo(t *testing.T) {
	for text, want := range map[string]bool{
		"CLUSTERDOWN no leader is known or reachable; certainly not charged, retry shortly":              true,
		"Error 111 connecting to 127.0.0.1:6380. Connection refused.":                                    true,
		"Redis::CannotConnectError Error connecting to Redis on 127.0.0.1:6380 (Errno::ECONNREFUSED)":    true,
		"redis error: INDOUBT proposed but not confirmed in time; perhaps charged, do not retry blindly": false,
		"EOF":             false,
		"Connection lost": false,
	} {
		if certain(text) != want {
			t.Errorf("%q: certain is %v", text, !want)
		}
	}
}
