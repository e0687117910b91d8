package node

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// put writes a model that came with its load as a repository of its own, and returns its folder; "" for a load without
// one.
func (n *Node) put(name string, how *server.Loading) (folder string, err error) {
	if how.Config == nil && len(how.Files) == 0 {
		return "", nil
	}
	if len(how.Files) == 0 {
		return "", oip.Errorf(oip.Unsupported, "parameters.config", "this node takes a configuration only together "+
			"with the model's files: put it into its repository")
	}
	for path := range how.Files {
		if !n.c.SentPython && n.c.Fake == nil && filepath.Base(path) == pythonFile {
			return "", oip.Errorf(oip.Forbidden, "parameters.file:"+path[:min(len(path), 100)], "is a file of Python, "+
				"which this node does not take with a load (sluice node --sent-python)")
		}
	}
	given, err := how.ModelConfig(name)
	if err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp("", "sluice-node-")
	if err != nil {
		return "", err
	}
	folder = filepath.Join(temp, "models")
	if err := how.Put(folder, name, given); err != nil {
		_ = removed(folder)
		return "", err
	}
	return folder, nil
}

// dropUnclaimed unloads a model that came with a load and that no run needs: whoever sent it is gone, and would send it
// again.
func (n *Node) dropUnclaimed(name string) {
	done, err := n.turn(context.Background(), name)
	if err != nil {
		return
	}
	defer done()
	n.mu.Lock()
	m := n.models[name]
	n.mu.Unlock()
	if m == nil || m.sent == "" || n.claims.has(name) {
		return
	}
	n.drop(m)
	n.log.Info("unloaded: nobody needs it any more", "model", name)
}

// removed removes what put has made.
func removed(folder string) error {
	if folder == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(folder))
}
