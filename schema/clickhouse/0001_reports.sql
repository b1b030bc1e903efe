-- Current state: what every reconciler says now, in three kinds of row that one
-- INSERT writes as one part, so that a reader sees all of a report or nothing.
--
--   reconciler    one per reconciler; its endpoint columns are empty, so that
--                 nothing mutable is in its key
--   subscription  one per (endpoint, reconciler): what a gate looks up; moving a
--                 reconciler writes a row with deleted = 1 under its old key
--   cluster       one per cluster: the position in its agent's stream, what
--                 cannot be listed, and whose children have not settled
CREATE TABLE IF NOT EXISTS {{.Local "current"}}{{.OnCluster}}
(
    row                 Enum8('reconciler' = 1, 'subscription' = 2, 'cluster' = 3),
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    path                LowCardinality(String),
    cluster             String,
    kind                LowCardinality(String),
    namespace           LowCardinality(String),
    name                String,

    version             UInt64,
    deleted             UInt8,
    received_at         DateTime64(3, 'UTC'),
    observed_at         DateTime64(3, 'UTC'),

    -- reconciler (its main source) and subscription (the source at its endpoint)
    destination         LowCardinality(String),
    status              LowCardinality(String),
    reason              LowCardinality(String),
    message             String,
    attempted           String,
    applied             String,
    attempted_commit    String,
    applied_commit      String,
    source_error        String,
    owner               String,
    aging_since         DateTime64(3, 'UTC'),
    -- what flickers: see hub/fold; nth is the subscription's place in it
    latch               String,
    nth                 UInt8,

    -- reconciler; sources is JSON and holds all of them where there is not just
    -- the one beside it
    source_type         LowCardinality(String),
    source_url          LowCardinality(String),
    source_ref          LowCardinality(String),
    source_path         LowCardinality(String),
    sources             String,
    origin              String,
    source_revision     String,
    since               DateTime64(3, 'UTC'),
    health              LowCardinality(String),
    suspended           UInt8,
    drifted             UInt8,
    settled             UInt8,
    digest              FixedString(16),

    -- cluster, both JSON; trouble is empty where there is none
    stream              String,
    trouble             String
)
ENGINE = {{.Engine "ReplacingMergeTree" "version, deleted"}}
ORDER BY (row, repo, ref, path, cluster, kind, namespace, name)
SETTINGS index_granularity = 2048;

{{.Distributed "current" "cityHash64(cluster)"}}

-- History: one row per reported change of a reconciler. A report that is sent
-- again after a crash has the same key, and FINAL counts it once.
CREATE TABLE IF NOT EXISTS {{.Local "history"}}{{.OnCluster}}
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    path                LowCardinality(String),
    cluster             LowCardinality(String),
    kind                LowCardinality(String),
    namespace           LowCardinality(String),
    name                String,
    epoch               UInt32,
    sequence            UInt64,

    observed_at         DateTime64(3, 'UTC') CODEC(Delta, LZ4),
    received_at         DateTime64(3, 'UTC') CODEC(Delta, LZ4),
    change              Enum8('reported' = 1, 'removed' = 2, 'late' = 3),
    destination         LowCardinality(String),
    status              LowCardinality(String),
    reason              LowCardinality(String),
    message             String CODEC(ZSTD(1)),
    attempted           String,
    applied             String,
    attempted_commit    String,
    applied_commit      String,
    source_type         LowCardinality(String),
    source_url          LowCardinality(String),
    source_ref          LowCardinality(String),
    source_path         LowCardinality(String),
    sources             String,
    origin              String,
    source_revision     String,
    source_error        String,
    health              LowCardinality(String),
    suspended           UInt8,
    drifted             UInt8,
    owner               String
)
ENGINE = {{.Engine "ReplacingMergeTree" "received_at"}}
PARTITION BY toYYYYMM(received_at)
ORDER BY (repo, ref, path, cluster, kind, namespace, name, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL {{.HistoryDays}} DAY;

{{.Distributed "history" "cityHash64(cluster)"}}

-- Reports: which messages are stored, so that a late one is told from a repeated one.
CREATE TABLE IF NOT EXISTS {{.Local "reports"}}{{.OnCluster}}
(
    cluster             LowCardinality(String),
    epoch               UInt32,
    sequence            UInt64,
    received_at         DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    observed_at         DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    mode                Enum8('snapshot' = 1, 'delta' = 2),
    reconcilers         UInt32,
    removed             UInt32,
    agent_version       LowCardinality(String)
)
ENGINE = {{.Engine "ReplacingMergeTree" "received_at"}}
ORDER BY (cluster, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 30 DAY;

{{.Distributed "reports" "cityHash64(cluster)"}}

-- Clusters: registrations and decommissions; the newest version holds.
CREATE TABLE IF NOT EXISTS {{.Local "clusters"}}{{.OnCluster}}
(
    cluster             String,
    version             UInt64,
    epoch               UInt32,
    decommissioned      UInt8,
    kind                LowCardinality(String),
    labels              Map(String, String),
    memberships         Nested(environment String, cluster_type String),
    reports_for         Array(String),
    heartbeat_ms        UInt64,
    agent_version       LowCardinality(String),
    registered_at       DateTime64(3, 'UTC'),
    nonce               UInt64
)
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (cluster, epoch, nonce);

{{.Distributed "clusters" "cityHash64(cluster)"}}

-- Heartbeats: when the current agent of a cluster was last heard of.
CREATE TABLE IF NOT EXISTS {{.Local "heartbeats"}}{{.OnCluster}}
(
    cluster             String,
    epoch               UInt32,
    received_at         DateTime64(3, 'UTC')
)
ENGINE = {{.Engine "ReplacingMergeTree" "received_at"}}
ORDER BY cluster;

{{.Distributed "heartbeats" "cityHash64(cluster)"}}

-- Tokens, by their hash.
CREATE TABLE IF NOT EXISTS {{.Local "tokens"}}{{.OnCluster}}
(
    id                  String,
    version             UInt64,
    name                String,
    role                LowCardinality(String),
    cluster             String,
    hash                FixedString(32),
    created_at          DateTime64(3, 'UTC'),
    revoked             UInt8
)
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY id;

{{.Distributed "tokens" "cityHash64(id)"}}

-- Gates: what is kept between two questions about one commit. Any number of
-- hubs may write; the earliest question and the highest count hold.
CREATE TABLE IF NOT EXISTS {{.Local "gates"}}{{.OnCluster}}
(
    repo                String,
    ref                 String,
    path                String,
    commit              String,
    policy              String,
    first_asked         SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    highest             SimpleAggregateFunction(max, UInt64),
    rose_at             SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    touched_at          SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = {{.Engine "AggregatingMergeTree" ""}}
ORDER BY (repo, ref, path, commit, policy)
TTL toDateTime(touched_at) + INTERVAL 400 DAY;

{{.Distributed "gates" "cityHash64(repo, commit)"}}

-- Memberships: a row per place of a cluster, for people's queries.
CREATE VIEW IF NOT EXISTS memberships{{.OnCluster}} AS
SELECT cluster, environment, cluster_type
FROM
(
    SELECT cluster, argMax(tuple(decommissioned, memberships.environment, memberships.cluster_type), version) AS newest
    FROM clusters GROUP BY cluster
)
ARRAY JOIN newest.2 AS environment, newest.3 AS cluster_type
WHERE newest.1 = 0;

-- Reconcilers: the current state for people's queries, without the machinery.
CREATE VIEW IF NOT EXISTS reconcilers{{.OnCluster}} AS
SELECT cluster, kind, namespace, name, destination, status, reason, message, since, attempted, applied, attempted_commit, applied_commit,
       source_type, source_url, source_ref, source_path, sources, origin, source_revision, source_error, health, suspended, drifted,
       owner, observed_at, received_at
FROM current FINAL
WHERE row = 'reconciler';
