package limiter

import "time"

// remoteTask is a task that came from another node, with the memory of its calls.
type remoteTask struct {
	task
	answer func([]byte)
}

// Serve is the handler for payloads that Forward sent on another node. It calls
// reply once, perhaps on another goroutine: with the answers of the calls that
// were decided (those at the front, if not all), or nil if none was: this node
// does not lead, and the calls are certainly not charged. payload is the
// limiter's until then.
func (l *Limiter) Serve(payload []byte, timeout time.Duration, reply func([]byte)) {
	if !l.r.Leading() {
		reply(nil)
		return
	}
	t, _ := l.remote.Get().(*remoteTask)
	if t == nil {
		t = &remoteTask{}
		t.reply = func(*task) { l.answerRemote(t) }
	}
	calls, err := readRequest(t.calls[:0], payload, &l.limits)
	if err != nil || len(calls) == 0 {
		reply(nil)
		return
	}
	t.calls, t.next, t.index, t.answer = calls, 0, 0, reply
	t.deadline = l.now() + int64(timeout)
	l.prepare(&t.task)
	if s := l.q.push(&t.task); s != OK {
		failAll(t.calls, s)
		reply(appendReply(nil, 0, t.calls))
		l.remote.Put(t)
	}
}

// answerRemote sends what was decided.
func (l *Limiter) answerRemote(t *remoteTask) {
	var frame []byte
	if t.next > 0 {
		frame = appendReply(nil, t.index, t.calls[:t.next])
	}
	answer := t.answer
	t.answer = nil
	l.remote.Put(t)
	answer(frame)
}

// takeReply reads the leader's answers into calls and returns how many were
// answered. A status other than OK is the answer for the others.
func (l *Limiter) takeReply(calls []Call, reply []byte) (int, Status) {
	n, index, err := readReply(calls, reply)
	if err != nil {
		return 0, InDoubt
	}
	for i := range calls[:n] {
		if c := &calls[i]; c.Status == OK && c.frees() {
			l.raiseFence(index)
			break
		}
	}
	return n, OK
}

// raiseFence holds local denials back until index is applied here.
func (l *Limiter) raiseFence(index uint64) {
	for {
		old := l.fence.Load()
		if old >= index || l.fence.CompareAndSwap(old, index) {
			return
		}
	}
}
