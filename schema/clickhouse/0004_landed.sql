-- Landed: where in a reconciler's history a commit began to run with success,
-- sorted by reconciler, so that what it ran before any row of the history is a
-- look-up: of a few rows each, for which small blocks are read. A message that is
-- stored twice has the same key.
CREATE TABLE IF NOT EXISTS {{.Local "landed"}}{{.OnCluster}}
(
    cluster             LowCardinality(String),
    kind                LowCardinality(String),
    namespace           LowCardinality(String),
    name                String,
    epoch               UInt32,
    sequence            UInt64,
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    path                LowCardinality(String),
    applied_commit      String,
    received_at         DateTime64(3, 'UTC') CODEC(Delta, LZ4)
)
ENGINE = {{.Engine "ReplacingMergeTree" "received_at"}}
ORDER BY (cluster, kind, namespace, name, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL {{.HistoryDays}} DAY
SETTINGS index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

{{.Distributed "landed" "cityHash64(cluster)"}}

-- What was stored before there was this table.
INSERT INTO landed (cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit, received_at)
SELECT cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit, received_at
FROM history WHERE status = 'success' AND change = 'reported' AND applied_commit != '';
