package jobstest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Galera is a cluster of MariaDB servers, each of which takes writes.
type Galera struct{ Nodes []*Server }

// NewGalera starts a cluster of so many nodes, on loopback, or each on a host of
// network where that is not nil. options are added to each node's command line. It takes
// some ten seconds.
func NewGalera(nodes int, network *Network, options ...string) (*Galera, error) {
	library, _ := filepath.Glob("/usr/lib/galera/libgalera_smm.so")
	if len(library) == 0 {
		return nil, errors.New("galera-4 is not installed")
	}
	g, members := &Galera{}, make([]string, nodes)
	for i := range members {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		members[i] = fmt.Sprintf("127.0.0.1:%d", port)
		if network != nil {
			members[i] = fmt.Sprintf("%s:%d", network.Host(i), port)
		}
	}
	for i := range nodes {
		s, err := NewMariaDB(options...)
		if err != nil {
			return nil, err
		}
		if network != nil {
			s.host, s.space = network.Host(i), network.Space(i)
			s.args = append(s.args, "--bind-address=0.0.0.0")
		}
		if err := s.join(library[0], members, i); err != nil {
			return nil, err
		}
		g.Nodes = append(g.Nodes, s)
	}
	for i, s := range g.Nodes {
		if err := s.startNode(i == 0); err != nil {
			g.Stop()
			return nil, fmt.Errorf("starting node %d: %w", i, err)
		}
	}
	return g, nil
}

// join makes a server a node: members[i] is where its group finds it, and state
// transfers come over separate ports.
func (s *Server) join(library string, members []string, i int) error {
	transfer, err := freePort()
	if err != nil {
		return err
	}
	incremental, err := freePort()
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(members[i], ":")
	s.args = append(s.args, "--wsrep-on=ON", "--wsrep-provider="+library, "--binlog-format=ROW",
		"--default-storage-engine=InnoDB",
		"--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1", "--wsrep-sst-method=rsync",
		"--wsrep-cluster-name=cmsjobs-test",
		"--wsrep-cluster-address=gcomm://"+strings.Join(members, ","), fmt.Sprintf("--wsrep-node-name=node%d", i),
		"--wsrep-node-address="+members[i], fmt.Sprintf("--wsrep-sst-receive-address=%s:%d", host, transfer),
		fmt.Sprintf(
			"--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=%s:%d;gcache.size=32M;"+
				"evs.suspect_timeout=PT4S;evs.inactive_timeout=PT8S",
			members[i], host, incremental))
	up := s.ready
	s.ready = func() error {
		if err := up(); err != nil {
			return err
		}
		return s.synced()
	}
	return nil
}

// startNode starts a node; the first one of a new cluster makes it.
func (s *Server) startNode(first bool) error {
	if !first {
		return s.Start()
	}
	args := s.args
	s.args = append(append([]string{}, args...), "--wsrep-new-cluster")
	err := s.Start()
	s.args = args
	return err
}

// synced says whether a node takes part in the cluster.
func (s *Server) synced() error {
	db, err := sql.Open("mysql", s.MySQLDSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	var name, state string
	if err := db.QueryRow("SHOW STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state); err != nil {
		return err
	}
	if state != "Synced" {
		return fmt.Errorf("the node is %s", state)
	}
	return nil
}

// Restart brings a killed node back into the cluster.
func (g *Galera) Restart(i int) error { return g.Nodes[i].Start() }

// Stop ends all nodes and removes their data.
func (g *Galera) Stop() {
	for _, s := range g.Nodes {
		s.Stop()
	}
	time.Sleep(10 * time.Millisecond) // the supervisors remove the folders
}

// Log is what node i wrote, for a test that wants to know why.
func (g *Galera) Log(i int) string {
	log, err := os.ReadFile(filepath.Join(g.Nodes[i].Dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(tail(log))
}
