package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Cluster is the free resources of every machine. Machines with the same free resources form a group. The choice of a
// machine depends on nothing else, so the work per instance grows with the number of groups and not of machines.
type Cluster struct {
	space   *space
	Servers []Server
	Groups  []*Group // groups with a server, by Left, ascending
	byKey   map[string]*Group
	// working memory of join
	keyBuffer []byte
}

// Server is a machine that instances share.
type Server struct {
	Device serving.DeviceTypeID
	// Threads, Percents of each accelerator, and Memory in bytes are left.
	Threads  int
	Percents []int
	Memory   int64
	Group    *Group
	worker   serving.WorkerID
	used     int // number of instances
}

// Group is servers with the same free resources.
type Group struct {
	key     string
	Left    float64 // threads and per cents, weighed by beta
	device  serving.DeviceTypeID
	threads int
	percent int // of all accelerators together
	most    int // largest per cent left of one accelerator
	memory  int64
	empty   bool
	Servers []int32 // the last is used next
}

// Unlimited is the memory of a machine whose memory is not known.
const Unlimited = math.MaxInt64 / 2

// newCluster returns the workers that are up, empty.
func newCluster(x *space, down []bool) *Cluster {
	c := &Cluster{space: x, Servers: make([]Server, 0, len(x.spec.Workers))}
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
		s := Server{
			worker: serving.WorkerID(w), Device: worker.DeviceType, Threads: device.Cores, Memory: device.MemoryBytes,
			Percents: percents[:device.Accelerators:device.Accelerators],
		}
		percents = percents[device.Accelerators:]
		if s.Memory == 0 {
			s.Memory = Unlimited
		}
		if !down[w] {
			c.Servers = append(c.Servers, s)
		}
	}
	c.regroup()
	return c
}

// regroup makes the groups of empty servers.
func (c *Cluster) regroup() {
	c.Groups, c.byKey = nil, make(map[string]*Group)
	whole := make([]*Group, len(c.space.spec.DeviceTypes))
	for at := len(c.Servers) - 1; at >= 0; at-- { // so that the first worker is used next
		s := &c.Servers[at]
		if g := whole[s.Device]; g != nil {
			g.Servers, s.Group = append(g.Servers, int32(at)), g
			continue
		}
		c.join(int32(at))
		whole[s.Device] = s.Group
	}
}

// join puts a server into the group of its free resources.
func (c *Cluster) join(at int32) {
	s := &c.Servers[at]
	sorted := append(make([]int, 0, 8), s.Percents...)
	slices.Sort(sorted)
	t := c.keyBuffer[:0]
	number := func(n int64) {
		t = append(t, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	number(int64(s.Device))
	number(int64(s.Threads))
	number(s.Memory)
	for _, p := range sorted {
		t = append(t, byte(p))
	}
	t = append(t, byte(min(s.used, 1)))
	c.keyBuffer = t
	g := c.byKey[string(t)]
	if g == nil {
		g = &Group{key: string(t), device: s.Device, threads: s.Threads, memory: s.Memory, empty: s.used == 0}
		percent := 0
		for _, p := range sorted {
			percent, g.most = percent+p, p
		}
		g.percent, g.Left = percent, c.space.weight(s.Threads, percent)
		c.byKey[g.key] = g
	}
	if len(g.Servers) == 0 {
		at, _ := slices.BinarySearchFunc(c.Groups, g, (*Group).Compare)
		c.Groups = slices.Insert(c.Groups, at, g)
	}
	g.Servers = append(g.Servers, at)
	s.Group = g
}

// leave takes a server out of its group.
func (c *Cluster) leave(at int32) {
	g := c.Servers[at].Group
	k := len(g.Servers) - 1
	if g.Servers[k] != at {
		k = slices.Index(g.Servers, at)
	}
	g.Servers = slices.Delete(g.Servers, k, k+1)
	if len(g.Servers) == 0 {
		at, _ := slices.BinarySearchFunc(c.Groups, g, (*Group).Compare)
		c.Groups = slices.Delete(c.Groups, at, at+1)
	}
}

// Compare orders groups by what they have left, the fullest first.
func (g *Group) Compare(b *Group) int {
	if c := cmp.Compare(g.Left, b.Left); c != 0 {
		return c
	}
	return cmp.Compare(g.key, b.key)
}

// Fits reports whether an instance fits on the servers of a group.
func (g *Group) Fits(c *Configuration) bool {
	if c.Whole {
		return g.empty && g.device == c.Device
	}
	return c.Threads <= g.threads && c.Percent <= g.most && c.Memory <= g.memory
}

// Allocate puts an instance onto a server: on the accelerator with the least left that still has room, or on the given
// one if that is not negative. ok is false when there is no room.
func (c *Cluster) Allocate(at int32, cfg *Configuration, accelerator int) (on int, ok bool) {
	s := &c.Servers[at]
	if !s.Group.Fits(cfg) {
		return 0, false
	}
	if cfg.Percent > 0 && !cfg.Whole {
		on = accelerator
		if on < 0 {
			for a, left := range s.Percents {
				if left >= cfg.Percent && (on < 0 || left < s.Percents[on]) {
					on = a
				}
			}
		} else if on >= len(s.Percents) || s.Percents[on] < cfg.Percent {
			return 0, false
		}
	}
	c.leave(at)
	s.change(cfg, on, -1)
	c.join(at)
	return on, true
}

// release takes an instance off a server.
func (c *Cluster) release(at int32, cfg *Configuration, accelerator int) {
	c.leave(at)
	c.Servers[at].change(cfg, accelerator, 1)
	c.join(at)
}

// change adds the resources of an instance to the free ones, or subtracts them with a sign of -1.
func (s *Server) change(cfg *Configuration, accelerator, sign int) {
	s.used -= sign
	if cfg.Whole {
		for a := range s.Percents {
			s.Percents[a] += sign * 100
		}
	} else if cfg.Percent > 0 {
		s.Percents[accelerator] += sign * cfg.Percent
	}
	s.Threads += sign * cfg.Threads
	s.Memory += int64(sign) * cfg.Memory
}

// serverOf returns the server of a worker, or -1.
func (c *Cluster) serverOf(w serving.WorkerID) int32 {
	at, ok := slices.BinarySearchFunc(c.Servers, w, func(s Server, w serving.WorkerID) int {
		return int(s.worker) - int(w)
	})
	if !ok {
		return -1
	}
	return int32(at)
}
