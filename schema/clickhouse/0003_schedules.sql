-- Schedules: what the scheduler decided for a cluster type and a deployment
-- target of an environment, and where all of it comes from. repo, ref and path
-- are the manifests endpoint in canonical form, written_… as the workload has it.
-- config and violations are JSON. The commits are those of the plan in which the
-- row last changed. deleted = 1: it is assigned no more.
CREATE TABLE IF NOT EXISTS {{.Local "schedules"}}{{.OnCluster}}
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
ENGINE = {{.Engine "ReplacingMergeTree" "version"}}
ORDER BY (environment, cluster_type, deployment_target);

{{.Distributed "schedules" "cityHash64(environment, cluster_type, deployment_target)"}}
