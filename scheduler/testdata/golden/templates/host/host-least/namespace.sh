# host-least on host, environment dev
export NAMESPACE='dev-host-host-least'
export WORKSPACE='team-a'
