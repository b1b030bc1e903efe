-- 0001_reports
CREATE TABLE IF NOT EXISTS current
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
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (row, repo, ref, path, cluster, kind, namespace, name)
SETTINGS index_granularity = 2048;

-- 0001_reports
CREATE TABLE IF NOT EXISTS history
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
ENGINE = ReplacingMergeTree(received_at)
PARTITION BY toYYYYMM(received_at)
ORDER BY (repo, ref, path, cluster, kind, namespace, name, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 30 DAY;

-- 0001_reports
CREATE TABLE IF NOT EXISTS reports
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
ENGINE = ReplacingMergeTree(received_at)
ORDER BY (cluster, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 30 DAY;

-- 0001_reports
CREATE TABLE IF NOT EXISTS clusters
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
ENGINE = ReplacingMergeTree(version)
ORDER BY (cluster, epoch, nonce);

-- 0001_reports
CREATE TABLE IF NOT EXISTS heartbeats
(
    cluster             String,
    epoch               UInt32,
    received_at         DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(received_at)
ORDER BY cluster;

-- 0001_reports
CREATE TABLE IF NOT EXISTS tokens
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
ENGINE = ReplacingMergeTree(version)
ORDER BY id;

-- 0001_reports
CREATE TABLE IF NOT EXISTS gates
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
ENGINE = AggregatingMergeTree()
ORDER BY (repo, ref, path, commit, policy)
TTL toDateTime(touched_at) + INTERVAL 400 DAY;

-- 0001_reports
CREATE VIEW IF NOT EXISTS memberships AS
SELECT cluster, environment, cluster_type
FROM
(
    SELECT cluster, argMax(tuple(decommissioned, memberships.environment, memberships.cluster_type), version) AS newest
    FROM clusters GROUP BY cluster
)
ARRAY JOIN newest.2 AS environment, newest.3 AS cluster_type
WHERE newest.1 = 0;

-- 0001_reports
CREATE VIEW IF NOT EXISTS reconcilers AS
SELECT cluster, kind, namespace, name, destination, status, reason, message, since, attempted, applied, attempted_commit, applied_commit,
       source_type, source_url, source_ref, source_path, sources, origin, source_revision, source_error, health, suspended, drifted,
       owner, observed_at, received_at
FROM current FINAL
WHERE row = 'reconciler';

-- 0002_names
CREATE TABLE IF NOT EXISTS repositories
(
    alias               String,
    repo                LowCardinality(String),
    url                 String,
    default_branch      String,
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY alias;

-- 0002_names
CREATE TABLE IF NOT EXISTS refs
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    chain               UInt32,
    fork                Int64,
    head                String,
    position            Int64,
    basis               UInt64,
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (repo, ref, chain);

-- 0002_names
CREATE TABLE IF NOT EXISTS commits
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    commit              String,
    chain               UInt32,
    position            Int64,
    parents             Array(String),
    author              LowCardinality(String),
    committed_at        DateTime64(3, 'UTC'),
    subject             String CODEC(ZSTD(1)),
    version             UInt64 CODEC(Delta, LZ4)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (repo, ref, commit);

-- 0002_names
CREATE TABLE IF NOT EXISTS deployment_targets
(
    environment         LowCardinality(String),
    workspace           LowCardinality(String),
    application         LowCardinality(String),
    workload            LowCardinality(String),
    deployment_target   LowCardinality(String),
    labels              Map(LowCardinality(String), String),
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    path                String,
    url                 String,
    source              LowCardinality(String),
    deleted             UInt8,
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (environment, workspace, application, workload, deployment_target);

-- 0002_names
CREATE TABLE IF NOT EXISTS assignments
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    chain               UInt32,
    environment         LowCardinality(String),
    workspace           LowCardinality(String),
    application         LowCardinality(String),
    workload            LowCardinality(String),
    deployment_target   LowCardinality(String),
    position            Int64,
    commit              String,
    workload_version    String,
    build               String,
    source_repo         LowCardinality(String),
    source_commit       String,
    build_time          DateTime64(3, 'UTC'),
    file                String,
    changed             Int64,
    deleted             UInt8,
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (repo, ref, chain, environment, workspace, application, workload, deployment_target, position);

-- 0002_names
CREATE TABLE IF NOT EXISTS descriptors
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    commit              String,
    environment         LowCardinality(String),
    workspace           LowCardinality(String),
    application         LowCardinality(String),
    workload            LowCardinality(String),
    deployment_target   LowCardinality(String),
    path                String,
    url                 String,
    workload_version    String,
    build               String,
    source_repo         LowCardinality(String),
    source_commit       String,
    build_time          DateTime64(3, 'UTC'),
    received_at         DateTime64(6, 'UTC'),
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (repo, ref, commit, environment, workspace, application, workload, deployment_target);

-- 0002_names
CREATE TABLE IF NOT EXISTS configurations
(
    repo                LowCardinality(String),
    ref                 LowCardinality(String),
    chain               UInt32,
    path                String,
    position            Int64,
    config_version      String,
    deleted             UInt8,
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (repo, ref, chain, path, position);

-- 0002_names
CREATE VIEW IF NOT EXISTS deployments AS
WITH
    subscriptions AS
    (
        SELECT s.cluster AS cluster, s.destination AS destination, s.kind AS kind, s.namespace AS namespace, s.name AS name,
               s.repo AS written_repo, s.ref AS written_ref, s.path AS path,
               if(r.repo = '', s.repo, r.repo) AS repo, if(s.ref = '', r.default_branch, s.ref) AS ref,
               s.applied_commit AS commit, s.attempted_commit AS attempted_commit,
               s.status AS status, s.reason AS reason, s.message AS message, s.observed_at AS observed_at, s.received_at AS received_at
        FROM (SELECT * FROM current FINAL WHERE row = 'subscription') AS s
        GLOBAL LEFT JOIN (SELECT alias, repo, default_branch FROM repositories FINAL) AS r ON s.repo = r.alias
    ),
    targets AS
    (
        SELECT p.repo AS repo, p.ref AS ref, p.path AS path,
               argMin(tuple(t.environment, t.workspace, t.application, t.workload, t.deployment_target),
                      tuple(-toInt64(length(t.path)), t.deleted, t.environment, t.workspace, t.application, t.workload, t.deployment_target)) AS target
        FROM
        (
            SELECT DISTINCT repo, ref, path,
                   arrayJoin(arrayPushFront(arrayMap(n -> arrayStringConcat(arraySlice(splitByChar('/', path), 1, n), '/'), range(1, length(splitByChar('/', path)) + 1)), '')) AS above
            FROM subscriptions
        ) AS p
        GLOBAL INNER JOIN (SELECT * FROM deployment_targets FINAL) AS t ON p.repo = t.repo AND p.ref = t.ref AND p.above = t.path
        GROUP BY p.repo, p.ref, p.path
    ),
    placed AS
    (
        SELECT s.*, t.target.1 AS environment, t.target.2 AS workspace, t.target.3 AS application, t.target.4 AS workload, t.target.5 AS deployment_target
        FROM subscriptions AS s
        GLOBAL LEFT JOIN targets AS t ON s.repo = t.repo AND s.ref = t.ref AND s.path = t.path
    ),
    dated AS
    (
        SELECT p.*, c.chain AS chain, c.position AS position, c.author AS author, c.committed_at AS committed_at, c.subject AS subject
        FROM placed AS p
        GLOBAL LEFT JOIN (SELECT repo, ref, commit, chain, position, author, committed_at, subject FROM commits FINAL) AS c
            ON p.repo = c.repo AND p.ref = c.ref AND p.commit = c.commit
    )
SELECT d.cluster AS cluster, d.destination AS destination, d.kind AS kind, d.namespace AS namespace, d.name AS name,
       d.written_repo AS repo, d.written_ref AS ref, d.path AS path,
       d.environment AS environment, d.workspace AS workspace, d.application AS application, d.workload AS workload,
       d.deployment_target AS deployment_target,
       if(a.workload_version = '', d.commit, a.workload_version) AS version, a.build AS build,
       a.source_repo AS source_repo, a.source_commit AS source_commit, a.build_time AS build_time,
       d.commit AS commit, d.attempted_commit AS attempted_commit, d.author AS author, d.committed_at AS committed_at, d.subject AS subject,
       d.status AS status, d.reason AS reason, d.message AS message, d.observed_at AS observed_at, d.received_at AS received_at
FROM dated AS d
GLOBAL ASOF LEFT JOIN
(
    SELECT repo, ref, chain, environment, workspace, application, workload, deployment_target, position,
           workload_version, build, source_repo, source_commit, build_time
    FROM assignments FINAL
) AS a
ON d.repo = a.repo AND d.ref = a.ref AND d.chain = a.chain AND d.environment = a.environment AND d.workspace = a.workspace
   AND d.application = a.application AND d.workload = a.workload AND d.deployment_target = a.deployment_target
   AND d.position >= a.position;

-- 0003_schedules
CREATE TABLE IF NOT EXISTS schedules
(
    environment          LowCardinality(String),
    cluster_type         LowCardinality(String),
    deployment_target    String,
    target               LowCardinality(String),
    workspace            LowCardinality(String),
    workload             LowCardinality(String),
    policies             Array(LowCardinality(String)),
    config_version       String,
    config               String CODEC(ZSTD(1)),
    files                Array(LowCardinality(String)),
    violations           String CODEC(ZSTD(1)),
    error                String CODEC(ZSTD(1)),
    repo                 LowCardinality(String),
    ref                  LowCardinality(String),
    path                 String,
    written_repo         LowCardinality(String),
    written_ref          LowCardinality(String),
    written_path         String,
    control_plane        LowCardinality(String),
    control_plane_commit LowCardinality(String),
    base_commit          LowCardinality(String),
    gitops_repo          LowCardinality(String),
    gitops_ref           LowCardinality(String),
    gitops_commit        LowCardinality(String),
    planned_at           DateTime64(3, 'UTC'),
    digest               String,
    deleted              UInt8,
    version              UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (environment, cluster_type, deployment_target);

-- 0004_landed
CREATE TABLE IF NOT EXISTS landed
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
ENGINE = ReplacingMergeTree(received_at)
ORDER BY (cluster, kind, namespace, name, epoch, sequence)
TTL toDateTime(received_at) + INTERVAL 30 DAY
SETTINGS index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

-- 0004_landed
INSERT INTO landed (cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit, received_at)
SELECT cluster, kind, namespace, name, epoch, sequence, repo, ref, path, applied_commit, received_at
FROM history WHERE status = 'success' AND change = 'reported' AND applied_commit != '';

-- 0005_rest
ALTER TABLE current MODIFY SETTING min_age_to_force_merge_seconds = 300;

