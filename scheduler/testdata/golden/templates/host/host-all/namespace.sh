# host-all on host, environment dev
export NAMESPACE='dev-host-host-all'
export WORKSPACE='team-a'
