package store

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

// History keeps what a dashboard shows of the latest day, second by second, in a bbolt file. It is safe for concurrent
// use by one process; a second one is refused. It takes at most about limit bytes: the oldest go first.
type History struct {
	db    *bbolt.DB
	limit int64
	lost  string
}

var historyTable = []byte("history") // by the unix second at which a piece begins: series by app, JSON, compressed

// gzipMagic begins a piece.
var gzipMagic = []byte{0x1f, 0x8b}

// historySize holds the bytes of all pieces under its own name.
var historySize = []byte("historysize")

// largestPiece bounds a piece that is read, in bytes as it is unpacked.
const largestPiece = 64 << 20

// HistoryAge is how far back a history reaches.
const HistoryAge = 24 * time.Hour

// OpenHistory opens or makes a file.
func OpenHistory(path string, limit int64) (*History, error) {
	db, lost, err := openTables(path, layout{
		tables: [][]byte{historyTable, historySize}, own: "its telemetry.history",
		takes: func(table string, key, value []byte) bool {
			return table == string(historyTable) && len(key) == 8 && bytes.HasPrefix(value, gzipMagic)
		},
		derive: func(tx *bbolt.Tx) error {
			total := uint64(0)
			err := tx.Bucket(historyTable).ForEach(func(_, piece []byte) error {
				total += uint64(len(piece))
				return nil
			})
			if err != nil {
				return err
			}
			return tx.Bucket(historySize).Put(historySize, binary.BigEndian.AppendUint64(nil, total))
		},
	})
	if err != nil {
		return nil, err
	}
	return &History{db: db, limit: limit, lost: lost}, nil
}

// Lost says what was lost because the file was damaged; "" if nothing was.
func (h *History) Lost() string { return h.lost }

// Close releases the file.
func (h *History) Close() error { return h.db.Close() }

// Add keeps a piece: series by app that begin at a unix second. It removes pieces that are too old or too many.
func (h *History) Add(second int64, apps map[string]*board.Series) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(apps), z.Close()); err != nil {
		return err
	}
	return h.db.Update(func(tx *bbolt.Tx) error {
		pieces, sizes := tx.Bucket(historyTable), tx.Bucket(historySize)
		total := int64(packed.Len())
		if b := sizes.Get(historySize); len(b) == 8 {
			total += int64(binary.BigEndian.Uint64(b))
		}
		key := binary.BigEndian.AppendUint64(nil, uint64(second))
		total -= int64(len(pieces.Get(key)))
		if err := pieces.Put(key, packed.Bytes()); err != nil {
			return err
		}
		oldest := uint64(max(0, second-int64(HistoryAge/time.Second)))
		c := pieces.Cursor()
		for k, v := c.First(); len(k) == 8; k, v = c.First() {
			if binary.BigEndian.Uint64(k) >= oldest && total <= h.limit {
				break
			}
			total -= int64(len(v))
			if err := pieces.Delete(bytes.Clone(k)); err != nil {
				return err
			}
		}
		return sizes.Put(historySize, binary.BigEndian.AppendUint64(nil, uint64(max(0, total))))
	})
}

// Since returns the unix second of the oldest piece; 0 where there is none.
func (h *History) Since() (second int64) {
	_ = h.db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket(historyTable).Cursor().First(); len(k) == 8 {
			second = int64(binary.BigEndian.Uint64(k))
		}
		return nil
	})
	return second
}

// pieceSpan is the longest time that a piece may cover, in s.
const pieceSpan = 3600

// App returns the series of an app between two unix seconds, oldest first. Pieces that cannot be read are passed over.
func (h *History) App(name string, from, to int64) (out []*board.Series, err error) {
	err = h.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(historyTable).Cursor()
		begin := binary.BigEndian.AppendUint64(nil, uint64(max(0, from-pieceSpan)))
		for k, v := c.Seek(begin); len(k) == 8 && int64(binary.BigEndian.Uint64(k)) <= to; k, v = c.Next() {
			if s := unpack(v, name); s != nil {
				out = append(out, s)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("store: history: %w", err)
	}
	return out, nil
}

// unpack returns the series of an app in a piece; nil where there is none.
func unpack(piece []byte, app string) *board.Series {
	z, err := gzip.NewReader(bytes.NewReader(piece))
	if err != nil {
		return nil
	}
	var apps map[string]*board.Series
	if json.NewDecoder(io.LimitReader(z, largestPiece)).Decode(&apps) != nil || apps[app] == nil ||
		!apps[app].WellFormed() {
		return nil
	}
	return apps[app]
}
