package limiter

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"limitd/algo"
)

func frameCalls(t testing.TB) []Call {
	return []Call{
		{Op: Take, NS: 3, Key: []byte("user:42"), Limit: throttle(t, 15, 16, 86400), Cost: 1},
		{Op: Take, Key: []byte{}, Limit: throttle(t, 0, 1, 1), Cost: -1},
		{Op: Reset, NS: 15, Key: []byte("a"), More: [][]byte{[]byte("b"), {}}},
		{Op: Exists, Key: []byte("a")},
		{Op: Type, Key: []byte("\x00\xff")},
		{Op: TTL, Key: []byte("t")},
		{Op: Flush, NS: 7, Key: []byte{}},
		{Op: FlushAll, Key: []byte{}},
		{Op: Take, Key: []byte("otp"), Limit: expr(t, "log:3/10m"), Cost: 2, Peek: true},
		{Op: TakeAll, Key: []byte("ip"), Parts: []Part{
			{Key: []byte("ip"), Limit: expr(t, "5/1s"), Cost: 1},
			{Key: []byte("day"), Limit: expr(t, "fixed:9/day,tz=Asia/Dhaka"), Cost: 300},
		}},
		{Op: List, Key: []byte("ip")},
		{Op: Take, Key: []byte("x"), Limit: expr(t, "1/1s"), Cost: -2, ID: []byte("id"), Tag: 9, Traced: true},
	}
}

func expr(t testing.TB, text string) algo.Limit {
	t.Helper()
	l, err := algo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRequestBytes(t *testing.T) {
	calls := frameCalls(t)
	b := appendRequest(nil, calls)
	const want = "010c" +
		"000307757365723a34320180c0a791a9ba0220" + "02" +
		"0000000180a8d6b90702" + "01" +
		"010f0161020162" + "00" +
		"0200016100" +
		"03000200ff" +
		"04000174" +
		"050700" +
		"060000" +
		"0000036f7470" + "07" + "01" + "096c6f673a332f31306d" + "04" +
		"0700026970" + "00" + "02" + "026970" + "04352f3173" + "02" +
		"03646179" + "1966697865643a392f6461792c747a3d417369612f4468616b61" + "d804" +
		"0800026970" +
		"e000" + "09" + "026964" + "0178" + "02" + "00" + "04312f3173" + "03"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("version 1 changed:\n got %s\nwant %s", got, want)
	}
	back, err := readRequest(nil, b, &Limits{})
	if err != nil || !reflect.DeepEqual(back, calls) {
		t.Fatalf("%v\n got %+v\nwant %+v", err, back, calls)
	}
}

func TestReplyRoundTrip(t *testing.T) {
	calls := frameCalls(t)
	calls[0].Verdict = algo.Verdict{Allowed: true, Limit: 16, Remaining: 15, ResetAfter: 5400e9}
	calls[1].Verdict = algo.Verdict{Limit: 1, RetryAfter: algo.Never}
	calls[8].Verdict, calls[8].At = algo.Verdict{Allowed: true, Limit: 3, Remaining: 1, Delay: 5}, 1700
	calls[9].At, calls[9].Parts[1].Verdict = 1800, algo.Verdict{Limit: 9, RetryAfter: algo.Never, ResetAfter: 4}
	calls[9].conclude()
	calls[10].Parts = []Part{{Ident: []byte{1}, N: 4, Verdict: algo.Verdict{ResetAfter: 7}}}
	calls[11].Verdict, calls[11].Repeated = algo.Verdict{Allowed: true}, true
	calls[11].Origin = &Origin{Index: 1, Base: 2, Term: 3, Round: 4, Seq: 5, Node: "n1"}
	calls[2].N, calls[3].Status, calls[5].N = 2, InDoubt, NoKey
	for n := range len(calls) + 1 {
		b := appendReply(nil, 77, calls[:n])
		got := frameCalls(t)
		answered, index, err := readReply(got, b)
		if err != nil || answered != n || index != 77 || !reflect.DeepEqual(got[:n], calls[:n]) {
			t.Fatalf("%d answers: %d, %d, %v\n got %+v", n, answered, index, err, got)
		}
		if n > 0 {
			if _, _, err := readReply(frameCalls(t)[:n-1], b); err == nil {
				t.Fatal("more answers than calls were taken")
			}
		}
	}
}

func TestAHostileRequestIsRefused(t *testing.T) {
	good := appendRequest(nil, frameCalls(t))
	for i := range good { // truncated anywhere
		if _, err := readRequest(nil, good[:i], &Limits{}); err == nil {
			t.Errorf("the first %d bytes are taken", i)
		}
	}
	for name, b := range map[string][]byte{
		"other version":     append([]byte{2}, good[1:]...),
		"trailing bytes":    append(bytes.Clone(good), 0),
		"count beyond":      {1, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"unknown op":        {1, 1, 9, 0, 0},
		"namespace 16":      {1, 1, 4, 16, 0},
		"key beyond":        {1, 1, 4, 0, 0x7f},
		"limit of 0":        {1, 1, 0, 0, 0, 1, 0, 0, 2},
		"key too long":      append([]byte{1, 1, 4, 0, 0xff, 0xff, 0x01}, make([]byte, 1<<15-1)...),
		"keys beyond":       {1, 1, 1, 0, 0, 0xff, 0xff, 3},
		"unknown algorithm": {1, 1, 0, 0, 0, 99, 2, 2, 2},
		"bad expression":    append([]byte{1, 1, 0, 0, 0, 7, 0, 4}, "1/0s\x02"...),
		"an empty ID":       append([]byte{1, 1, 0x40, 0, 0, 1, 'x', 1}, 2, 2, 2),
		"an ID of a reset":  {1, 1, 0x41, 0, 1, 'a', 1, 'x', 0},
		"no parts":          {1, 1, 7, 0, 0, 0, 0},
		"too many parts":    append([]byte{1, 1, 7, 0, 0, 0, 33}, bytes.Repeat([]byte("\x00\x041/1s\x02"), 33)...),
		"the same part":     append([]byte{1, 1, 7, 0, 0, 0, 2}, bytes.Repeat([]byte("\x00\x041/1s\x02"), 2)...),
	} {
		if _, err := readRequest(nil, b, &Limits{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(appendRequest(nil, frameCalls(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := readRequest(nil, b, &Limits{})
		if err != nil {
			return
		}
		again, err := readRequest(nil, appendRequest([]byte{}, calls), &Limits{})
		if err != nil || !reflect.DeepEqual(again, calls) {
			t.Fatalf("%v: %+v became %+v", err, calls, again)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	f.Add(appendReply(nil, 1, frameCalls(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		calls := frameCalls(t)
		n, index, err := readReply(calls, b)
		if err != nil {
			return
		}
		got := frameCalls(t)
		if m, i, err := readReply(got, appendReply([]byte{}, index, calls[:n])); err != nil || m != n || i != index || !reflect.DeepEqual(got[:n], calls[:n]) {
			t.Fatalf("%v", err)
		}
	})
}
