-- Repositories: under each name by which one is known, its own name. A
-- repository that nobody follows, but descriptors are pushed for, has no url.
CREATE TABLE IF NOT EXISTS {{.Local "repositories"}}{{.OnCluster}}
(
    alias               String,
    repo                LowCardinality(String),
    url                 String,
    default_branch      String,
    version             UInt64
)
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY alias;

{{.Distributed "repositories" "cityHash64(alias)"}}

-- Refs: the chains of first parents that a ref has followed. The one with the
-- highest number is current. fork is the last position that it shares with the
-- one before it, -1 where it shares none; head and position say how far it is
-- written; basis changes when the repository's names do.
CREATE TABLE IF NOT EXISTS {{.Local "refs"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (repo, ref, chain);

{{.Distributed "refs" "cityHash64(repo, ref)"}}

-- Commits: where each stands on a ref, and what people read of it. A side commit
-- has the position of the merge that brought it. Its assignments are there when
-- it is.
CREATE TABLE IF NOT EXISTS {{.Local "commits"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (repo, ref, commit);

{{.Distributed "commits" "cityHash64(repo, commit)"}}

-- Deployment targets with their manifests endpoints. One that no document names
-- any more stays, with deleted = 1: clusters may still run it.
CREATE TABLE IF NOT EXISTS {{.Local "deployment_targets"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (environment, workspace, application, workload, deployment_target);

{{.Distributed "deployment_targets" "cityHash64(environment, workload, deployment_target)"}}

-- Assignments: from the position on, until the next row of the target on the
-- chain, the target carries the workload version; none where deleted is 1. A
-- chain begins at its fork with a row for each target that carries one there;
-- commit is the one that brought the version.
CREATE TABLE IF NOT EXISTS {{.Local "assignments"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (repo, ref, chain, environment, workspace, application, workload, deployment_target, position);

{{.Distributed "assignments" "cityHash64(repo, environment, workload, deployment_target)"}}

-- Descriptors that were pushed by the API. repo is canonical; the endpoint is
-- the one that the descriptor names.
CREATE TABLE IF NOT EXISTS {{.Local "descriptors"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (repo, ref, commit, environment, workspace, application, workload, deployment_target);

{{.Distributed "descriptors" "cityHash64(repo, commit)"}}

-- Configurations: from the position on, the folder holds the configuration of
-- that version; none where deleted is 1. A chain begins at its fork with all of
-- them.
CREATE TABLE IF NOT EXISTS {{.Local "configurations"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (repo, ref, chain, path, position);

{{.Distributed "configurations" "cityHash64(repo, path)"}}

-- Deployments: every current subscription with the target that it belongs to,
-- and the version that the target carries at the applied commit. A target is the
-- one with the longest path that is equal to or above the subscription's; of
-- several, one that still is before one that was, then the first by name.
-- Without a descriptor the version is the commit.
CREATE VIEW IF NOT EXISTS deployments{{.OnCluster}} AS
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
