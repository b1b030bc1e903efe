-- 0001_reports
CREATE TABLE IF NOT EXISTS current_local ON CLUSTER 'prod'
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
    latch               String,
    nth                 UInt8,

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

    stream              String,
    trouble             String
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', version, deleted)
ORDER BY (row, repo, ref, path, cluster, kind, namespace, name)
SETTINGS index_granularity = 2048;

-- 0001_reports
CREATE TABLE IF NOT EXISTS current ON CLUSTER 'prod' AS current_local
ENGINE = Distributed('prod', 'landfall', 'current_local', cityHash64(cluster));

-- 0001_reports
CREATE TABLE IF NOT EXISTS history_local ON CLUSTER 'prod'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', received_at)
PARTITION BY toYYYYMM(received_at)
ORDER BY (repo, ref, path, cluster, kind, namespace, name, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 400 DAY;

-- 0001_reports
CREATE TABLE IF NOT EXISTS history ON CLUSTER 'prod' AS history_local
ENGINE = Distributed('prod', 'landfall', 'history_local', cityHash64(cluster));

-- 0001_reports
CREATE TABLE IF NOT EXISTS reports_local ON CLUSTER 'prod'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', received_at)
ORDER BY (cluster, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 30 DAY;

-- 0001_reports
CREATE TABLE IF NOT EXISTS reports ON CLUSTER 'prod' AS reports_local
ENGINE = Distributed('prod', 'landfall', 'reports_local', cityHash64(cluster));

-- 0001_reports
CREATE TABLE IF NOT EXISTS clusters_local ON CLUSTER 'prod'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', version)
ORDER BY (cluster, epoch, nonce);

-- 0001_reports
CREATE TABLE IF NOT EXISTS clusters ON CLUSTER 'prod' AS clusters_local
ENGINE = Distributed('prod', 'landfall', 'clusters_local', cityHash64(cluster));

-- 0001_reports
CREATE TABLE IF NOT EXISTS heartbeats_local ON CLUSTER 'prod'
(
    cluster             String,
    epoch               UInt32,
    received_at         DateTime64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', received_at)
ORDER BY cluster;

-- 0001_reports
CREATE TABLE IF NOT EXISTS heartbeats ON CLUSTER 'prod' AS heartbeats_local
ENGINE = Distributed('prod', 'landfall', 'heartbeats_local', cityHash64(cluster));

-- 0001_reports
CREATE TABLE IF NOT EXISTS tokens_local ON CLUSTER 'prod'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', version)
ORDER BY id;

-- 0001_reports
CREATE TABLE IF NOT EXISTS tokens ON CLUSTER 'prod' AS tokens_local
ENGINE = Distributed('prod', 'landfall', 'tokens_local', cityHash64(id));

-- 0001_reports
CREATE TABLE IF NOT EXISTS gates_local ON CLUSTER 'prod'
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
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
ORDER BY (repo, ref, path, commit, policy)
TTL toDateTime(touched_at) + INTERVAL 400 DAY;

-- 0001_reports
CREATE TABLE IF NOT EXISTS gates ON CLUSTER 'prod' AS gates_local
ENGINE = Distributed('prod', 'landfall', 'gates_local', cityHash64(repo, commit));

-- 0001_reports
CREATE VIEW IF NOT EXISTS memberships ON CLUSTER 'prod' AS
SELECT cluster, environment, cluster_type
FROM
(
    SELECT cluster, argMax(tuple(decommissioned, memberships.environment, memberships.cluster_type), version) AS newest
    FROM clusters GROUP BY cluster
)
ARRAY JOIN newest.2 AS environment, newest.3 AS cluster_type
WHERE newest.1 = 0;

-- 0001_reports
CREATE VIEW IF NOT EXISTS reconcilers ON CLUSTER 'prod' AS
SELECT cluster, kind, namespace, name, destination, status, reason, message, since, attempted, applied, attempted_commit, applied_commit,
       source_type, source_url, source_ref, source_path, sources, origin, source_revision, source_error, health, suspended, drifted,
       owner, observed_at, received_at
FROM current FINAL
WHERE row = 'reconciler';

