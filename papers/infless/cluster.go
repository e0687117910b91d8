package infless

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// cluster is the free resources of every machine. Machines with the same free resources form a group. The choice of a
// machine depends on nothing else, so the work per instance grows with the number of groups and not of machines.
type cluster struct {
	space   *space
	servers []server
	groups  []*group // groups with a server, by left, ascending
	byKey   map[string]*group
	// working memory of join
	keyBuffer []byte
}

// server is a machine that instances share.
type server struct {
	worker serving.WorkerID
	device serving.DeviceTypeID
	// left
	threads  int
	percents []int // left of each accelerator
	// left, in bytes
	memory int64
	used   int // number of instances
	group  *group
}

// group is servers with the same free resources.
type group struct {
	key     string
	left    float64 // threads and per cents, weighed by beta
	device  serving.DeviceTypeID
	threads int
	percent int // of all accelerators together
	most    int // largest per cent left of one accelerator
	memory  int64
	empty   bool
	servers []int32 // the last is used next
}

// unlimited is the memory of a machine whose memory is not known.
const unlimited = math.MaxInt64 / 2

// newCluster returns the workers that are up, empty.
func newCluster(x *space, down []bool) *cluster {
	c := &cluster{space: x, servers: make([]server, 0, len(x.spec.Workers))}
	accelerators := 0
	for _, w := range x.spec.Workers {
		accelerators += x.spec.DeviceTypes[w.DeviceType].Accelerators
	}
	percents := make([]int, accelerators)
	for a := range percents {
		percents[a] = 100
	}
	for w, worker := range x.spec.Workers {
		device := &x.spec.DeviceTypes[worker.DeviceType]
		s := server{
			worker: serving.WorkerID(w), device: worker.DeviceType, threads: device.Cores, memory: device.MemoryBytes,
			percents: percents[:device.Accelerators:device.Accelerators],
		}
		percents = percents[device.Accelerators:]
		if s.memory == 0 {
			s.memory = unlimited
		}
		if !down[w] {
			c.servers = append(c.servers, s)
		}
	}
	c.regroup()
	return c
}

// regroup makes the groups of empty servers.
func (c *cluster) regroup() {
	c.groups, c.byKey = nil, make(map[string]*group)
	whole := make([]*group, len(c.space.spec.DeviceTypes))
	for at := len(c.servers) - 1; at >= 0; at-- { // so that the first worker is used next
		s := &c.servers[at]
		if g := whole[s.device]; g != nil {
			g.servers, s.group = append(g.servers, int32(at)), g
			continue
		}
		c.join(int32(at))
		whole[s.device] = s.group
	}
}

// join puts a server into the group of its free resources.
func (c *cluster) join(at int32) {
	s := &c.servers[at]
	sorted := append(make([]int, 0, 8), s.percents...)
	slices.Sort(sorted)
	t := c.keyBuffer[:0]
	number := func(n int64) {
		t = append(t, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	number(int64(s.device))
	number(int64(s.threads))
	number(s.memory)
	for _, p := range sorted {
		t = append(t, byte(p))
	}
	t = append(t, byte(min(s.used, 1)))
	c.keyBuffer = t
	g := c.byKey[string(t)]
	if g == nil {
		g = &group{key: string(t), device: s.device, threads: s.threads, memory: s.memory, empty: s.used == 0}
		percent := 0
		for _, p := range sorted {
			percent, g.most = percent+p, p
		}
		g.percent, g.left = percent, c.space.weight(s.threads, percent)
		c.byKey[g.key] = g
	}
	if len(g.servers) == 0 {
		at, _ := slices.BinarySearchFunc(c.groups, g, compare)
		c.groups = slices.Insert(c.groups, at, g)
	}
	g.servers = append(g.servers, at)
	s.group = g
}

// leave takes a server out of its group.
func (c *cluster) leave(at int32) {
	g := c.servers[at].group
	k := len(g.servers) - 1
	if g.servers[k] != at {
		k = slices.Index(g.servers, at)
	}
	g.servers = slices.Delete(g.servers, k, k+1)
	if len(g.servers) == 0 {
		at, _ := slices.BinarySearchFunc(c.groups, g, compare)
		c.groups = slices.Delete(c.groups, at, at+1)
	}
}

func compare(a, b *group) int {
	switch {
	case a.left < b.left:
		return -1
	case a.left > b.left:
		return 1
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return 0
}

// fits reports whether an instance fits on the servers of a group.
func (g *group) fits(c *Configuration) bool {
	if c.Whole {
		return g.empty && g.device == c.Device
	}
	return c.Threads <= g.threads && c.Percent <= g.most && c.Memory <= g.memory
}

// allocate puts an instance onto a server: on the accelerator with the least left that still has room, or on the given
// one if that is not negative. ok is false when there is no room.
func (c *cluster) allocate(at int32, cfg *Configuration, accelerator int) (on int, ok bool) {
	s := &c.servers[at]
	if !s.group.fits(cfg) {
		return 0, false
	}
	if cfg.Percent > 0 && !cfg.Whole {
		on = accelerator
		if on < 0 {
			for a, left := range s.percents {
				if left >= cfg.Percent && (on < 0 || left < s.percents[on]) {
					on = a
				}
			}
		} else if on >= len(s.percents) || s.percents[on] < cfg.Percent {
			return 0, false
		}
	}
	c.leave(at)
	s.change(cfg, on, -1)
	c.join(at)
	return on, true
}

// release takes an instance off a server.
func (c *cluster) release(at int32, cfg *Configuration, accelerator int) {
	c.leave(at)
	c.servers[at].change(cfg, accelerator, 1)
	c.join(at)
}

// change adds the resources of an instance to the free ones, or subtracts them with a sign of -1.
func (s *server) change(cfg *Configuration, accelerator, sign int) {
	s.used -= sign
	if cfg.Whole {
		for a := range s.percents {
			s.percents[a] += sign * 100
		}
	} else if cfg.Percent > 0 {
		s.percents[accelerator] += sign * cfg.Percent
	}
	s.threads += sign * cfg.Threads
	s.memory += int64(sign) * cfg.Memory
}

// serverOf returns the server of a worker, or -1.
func (c *cluster) serverOf(w serving.WorkerID) int32 {
	at, ok := slices.BinarySearchFunc(c.servers, w, func(s server, w serving.WorkerID) int {
		return int(s.worker) - int(w)
	})
	if !ok {
		return -1
	}
	return int32(at)
}
