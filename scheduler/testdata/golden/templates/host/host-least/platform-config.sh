# host-least on host, environment dev
export DEBUG='false'
export EMPTY=''
export LIMITS='{"cpu":2,"memory":{"hard":"2Gi","soft":"1Gi"}}'
export LISTENERS='[{"name":"http","port":80},{"name":"https","port":443}]'
export PORT='8080'
export QUOTED='it'\''s "quoted"; $HOME'
export REGION='West US'
export TEXT='two
lines
'
export VERSION='1.10'
export DB_HOST='mysql.example'
