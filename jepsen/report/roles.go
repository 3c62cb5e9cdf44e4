package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"limitd/jepsen/history"
)

// silence is how long after a sample a node is thought to be as it said.
const silence = int64(time.Second)

// rolePanel has a lane for each node: what it said that it is, in which term, when it
// decided, and when it did not run.
func (r *run) rolePanel(x linear) *panel {
	const lane = 30.0
	p := &panel{
		Title: "Leader and term of each node",
		Note:  "Roles are what the nodes said (INFO, five times a second); the marks beneath are rounds that a node decided, from its trace.",
		Lanes: true, Height: math.Max(lane, lane*float64(len(r.nodes))), XTicks: timeTicks(x),
		Legend: []entry{{"box", "leader", "leader"}, {"thin", "follower", "follower"}, {"thin", "candidate", "candidate"},
			{"thin", "other-role", "other (joining, non-voter, none)"}, {"thin", "down", "not running, or paused"}, {"line", "decides", "decides rounds"}},
	}
	if len(r.samples) == 0 && len(r.rounds) == 0 {
		p.Missing = "no samples and no traces"
		return p
	}
	for i, id := range r.nodes {
		top := lane * float64(i)
		p.YTicks = append(p.YTicks, tick{top + lane/2, show(id)})
		p.Shapes = append(p.Shapes, r.downShapes(id, x, top+4)...)
		p.Shapes = append(p.Shapes, r.roleShapes(id, x, top+4)...)
		p.Shapes = append(p.Shapes, r.decidesShape(id, x, top+lane-4))
	}
	return p
}

// roleShapes are the spans in which a node said the same.
func (r *run) roleShapes(id string, x linear, top float64) (all []shape) {
	const height = 16.0
	free := 0.0
	var mine []history.Sample
	for _, s := range r.samples {
		if s.Node == id {
			mine = append(mine, s)
		}
	}
	for i := 0; i < len(mine); {
		first := mine[i]
		to := first.Time
		for ; i < len(mine) && mine[i].Role == first.Role && mine[i].Term == first.Term && mine[i].Time-to <= silence; i++ {
			to = mine[i].Time
		}
		if i < len(mine) && mine[i].Time-to <= silence {
			to = mine[i].Time
		}
		from, end := x.at(float64(first.Time)), x.at(float64(to))
		s := shape{Class: "other-role", X: from, Y: top + 5, W: math.Max(end-from, 2), H: height - 10,
			Title: show(fmt.Sprintf("%s: %s, term %d, from %s to %s", id, first.Role, first.Term, seconds(first.Time), seconds(to)))}
		switch first.Role {
		case "leader":
			s.Class, s.Y, s.H = "leader", top, height
		case "follower", "candidate":
			s.Class = first.Role
		}
		all = append(all, s)
		if text := fmt.Sprintf("term %d", first.Term); first.Role == "leader" && from >= free && from+textWidth(text) <= plotWidth {
			class := "in-leader"
			if s.W < textWidth(text) {
				class = "by-leader"
			}
			all = append(all, shape{Class: class, X: from + 4, Y: top + 12, Text: text})
			free = from + textWidth(text)
		}
	}
	return all
}

// downShapes are the spans in which a node was not up.
func (r *run) downShapes(id string, x linear, top float64) (all []shape) {
	for i, h := range r.health {
		n, known := h.Nodes[id]
		if !known || n.Up {
			continue
		}
		to := r.end
		if i+1 < len(r.health) {
			to = r.health[i+1].Time
		}
		from, end := x.at(float64(h.Time)), x.at(float64(to))
		all = append(all, shape{Class: "down", X: from, Y: top + 2, W: math.Max(end-from, 1), H: 12, Title: show(fmt.Sprintf("%s: not up from %s to %s", id, seconds(h.Time), seconds(to)))})
	}
	return all
}

// decidesShape marks when a node decided: a line over each stretch of rounds with less
// than a pixel between them.
func (r *run) decidesShape(id string, x linear, y float64) shape {
	var d pen
	from, to := math.Inf(-1), math.Inf(-1)
	flush := func() {
		if !math.IsInf(from, -1) {
			d.move(from, y)
			d.line(to, y)
		}
	}
	for _, one := range r.rounds {
		if one.node != id {
			continue
		}
		at := x.at(float64(one.time))
		if at-to > 2 {
			flush()
			from = at
		}
		to = at + 1
	}
	flush()
	return shape{Class: "decides", D: d.String(), Title: show(id) + " decides rounds"}
}

// leaderChanges counts the leaderships that were sampled, after the first.
func (r *run) leaderChanges() int64 {
	var terms []uint64
	for _, s := range r.samples {
		if s.Role == "leader" && !slices.Contains(terms, s.Term) {
			terms = append(terms, s.Term)
		}
	}
	return int64(max(0, len(terms)-1))
}
