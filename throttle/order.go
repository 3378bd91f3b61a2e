package throttle

import "iter"

// order is a set of tickets in an order, with ranks: a treap that knows the size
// of its parts (Seidel and Aragon, Randomized Search Trees, 1996). Insert, remove,
// rank and first take O(log n) expected steps and allocate nothing: the knots are
// parts of the tickets.
//
// What compare looks at must not change while a ticket is in the set.
type order struct {
	place   place
	compare func(a, b *Ticket) int
	root    *knot
}

// knot is a ticket's place in one set.
type knot struct {
	in          *order // the set it is in; nil: none
	ticket      *Ticket
	left, right *knot
	weight      uint64 // above those of left and right
	size        int    // of the tree below and with it
}

func (o *order) len() int { return o.root.len() }

func (n *knot) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *knot) resize() { n.size = 1 + n.left.len() + n.right.len() }

func (o *order) has(t *Ticket) bool { return t.knots[o.place].in == o }

// first gives the first ticket, or nil.
func (o *order) first() *Ticket {
	n := o.root
	if n == nil {
		return nil
	}
	for n.left != nil {
		n = n.left
	}
	return n.ticket
}

// last gives the last ticket, or nil.
func (o *order) last() *Ticket {
	n := o.root
	if n == nil {
		return nil
	}
	for n.right != nil {
		n = n.right
	}
	return n.ticket
}

// rank is the number of tickets in the set that go before t.
func (o *order) rank(t *Ticket) (before int) {
	for n := o.root; n != nil; {
		if o.compare(t, n.ticket) <= 0 {
			n = n.left
		} else {
			before += n.left.len() + 1
			n = n.right
		}
	}
	return before
}

// all gives the tickets in their order. The set must not change meanwhile.
func (o *order) all() iter.Seq[*Ticket] {
	return func(yield func(*Ticket) bool) { o.root.walk(yield) }
}

func (n *knot) walk(yield func(*Ticket) bool) bool {
	return n == nil || (n.left.walk(yield) && yield(n.ticket) && n.right.walk(yield))
}

// insert adds t; a ticket that is in the set already stays once.
func (o *order) insert(t *Ticket) {
	n := &t.knots[o.place]
	if n.in == o {
		return
	}
	*n = knot{in: o, ticket: t, weight: scatter(t.seq), size: 1}
	o.root = o.put(o.root, n)
}

// put adds n to the tree at, and gives the tree that this makes.
func (o *order) put(at, n *knot) *knot {
	if at == nil {
		return n
	}
	if n.weight > at.weight {
		n.left, n.right = o.split(at, n.ticket)
		n.resize()
		return n
	}
	if o.compare(n.ticket, at.ticket) < 0 {
		at.left = o.put(at.left, n)
	} else {
		at.right = o.put(at.right, n)
	}
	at.size++
	return at
}

// split parts the tree into what goes before t and what does not.
func (o *order) split(at *knot, t *Ticket) (before, after *knot) {
	if at == nil {
		return nil, nil
	}
	if o.compare(at.ticket, t) < 0 {
		at.right, after = o.split(at.right, t)
		at.resize()
		return at, after
	}
	before, at.left = o.split(at.left, t)
	at.resize()
	return before, at
}

// remove takes t out; one that is not in the set is no error.
func (o *order) remove(t *Ticket) {
	n := &t.knots[o.place]
	if n.in != o {
		return
	}
	link := &o.root
	for *link != n {
		(*link).size--
		if o.compare(t, (*link).ticket) < 0 {
			link = &(*link).left
		} else {
			link = &(*link).right
		}
	}
	*link = merge(n.left, n.right)
	*n = knot{}
}

// merge joins two trees of which all of a go before all of b.
func merge(a, b *knot) *knot {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight > b.weight:
		a.right = merge(a.right, b)
		a.resize()
		return a
	default:
		b.left = merge(a, b.left)
		b.resize()
		return b
	}
}

// scatter gives a weight that looks random, and is the same each time
// (the finalizer of splitmix64).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
