package node

import "sync"

// claims are which runs need which models. While a dispatcher changes over from one run to another, both have models
// loaded and unloaded here, and what the old one drops the new one may just have asked for.
//
// A run that names itself claims what it loads, for as long as one of its connections stands: one that has died needs
// nothing. The zero value is empty.
type claims struct {
	mu     sync.Mutex
	models map[string]map[string]bool // owners by model
	live   map[string]string          // owners by connection, "" where it has named none
}

// connected notes that a connection begins or has ended. It returns the models that no run needs any more.
func (c *claims) connected(remote string, begins bool) (unclaimed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = make(map[string]string)
	}
	if begins {
		c.live[remote] = ""
		return nil
	}
	owner := c.live[remote]
	delete(c.live, remote)
	if owner == "" || c.stands(owner) {
		return nil
	}
	for model, owners := range c.models { // any order: each is looked at by itself
		if owners[owner] && len(owners) == 1 {
			unclaimed = append(unclaimed, model)
		}
		c.drop(model, owner)
	}
	return unclaimed
}

// has reports whether a run needs a model.
func (c *claims) has(model string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.models[model]) > 0
}

// stands reports whether a run has a connection. The caller holds mu.
func (c *claims) stands(owner string) bool {
	for _, x := range c.live {
		if x == owner {
			return true
		}
	}
	return false
}

// drop takes a claim away. The caller holds mu.
func (c *claims) drop(model, owner string) {
	delete(c.models[model], owner)
	if len(c.models[model]) == 0 {
		delete(c.models, model)
	}
}

// claim notes that a run needs a model. It does nothing for one whose connection has just ended.
func (c *claims) claim(model, owner, remote string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.live[remote]; !ok || owner == "" {
		return
	}
	c.live[remote] = owner
	if c.models == nil {
		c.models = make(map[string]map[string]bool)
	}
	if c.models[model] == nil {
		c.models[model] = make(map[string]bool)
	}
	c.models[model][owner] = true
}

// release notes that a run does not need a model any more, and reports whether another one does.
func (c *claims) release(model, owner string) (needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(model, owner)
	return len(c.models[model]) > 0
}
