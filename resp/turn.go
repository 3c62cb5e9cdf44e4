package resp

// turn keeps clients that ask for much from the others: a chunk that has made many
// replies goes on only in its turn, and half of the processors at most work on such
// chunks. Otherwise a few dozen of them would keep all processors busy, and a client
// that asks for one thing would wait until each has had its time slice.
type turn struct{ of *Server }

func (t *turn) begin(s *Server) {
	s.turns <- struct{}{}
	t.of = s
}

func (t *turn) end() {
	if t.of != nil {
		<-t.of.turns
		t.of = nil
	}
}
