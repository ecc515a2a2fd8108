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

// Galera is a cluster of MariaDB servers on loopback, each of which takes
// writes.
type Galera struct{ Nodes []*Server }

// NewGalera starts a cluster of so many nodes. It takes some ten seconds.
func NewGalera(nodes int) (*Galera, error) {
	library, _ := filepath.Glob("/usr/lib/galera/libgalera_smm.so")
	if len(library) == 0 {
		return nil, errors.New("galera-4 is not installed")
	}
	ports := make([]int, nodes)
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	g := &Galera{}
	for i := range nodes {
		s, err := NewMariaDB()
		if err != nil {
			return nil, err
		}
		if err := s.join(library[0], ports, i); err != nil {
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

// join makes a server a node: its group port is ports[i], and state transfers
// come over a port of their own.
func (s *Server) join(library string, ports []int, i int) error {
	transfer, err := freePort()
	if err != nil {
		return err
	}
	incremental, err := freePort()
	if err != nil {
		return err
	}
	members := make([]string, len(ports))
	for k, p := range ports {
		members[k] = fmt.Sprintf("127.0.0.1:%d", p)
	}
	s.args = append(s.args, "--wsrep-on=ON", "--wsrep-provider="+library, "--binlog-format=ROW", "--default-storage-engine=InnoDB",
		"--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1", "--wsrep-sst-method=rsync", "--wsrep-cluster-name=cmsjobs-test",
		"--wsrep-cluster-address=gcomm://"+strings.Join(members, ","), fmt.Sprintf("--wsrep-node-name=node%d", i),
		fmt.Sprintf("--wsrep-node-address=127.0.0.1:%d", ports[i]), fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", transfer),
		fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;ist.recv_addr=127.0.0.1:%d;gcache.size=32M;evs.suspect_timeout=PT4S;evs.inactive_timeout=PT8S",
			ports[i], incremental))
	up := s.ready
	s.ready = func() error {
		if err := up(); err != nil {
			return err
		}
		return synced(s.Port)
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
func synced(port int) error {
	db, err := sql.Open("mysql", MariaDBDSN(port, ""))
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
