package main

import "strings"

// suggestions are what to try, as lines for a shell. The names in braces are
// replaced.
const suggestions = `
All of it goes on until Ctrl-C. Try, in another terminal:

  export LANDFALL_HUB={url} PATH={bin}:$PATH
  landfall status                 # every folder on every host, with its version, configuration and commit
  landfall status --summary       # which version should run where, and which does on how many
  landfall history --limit 20     # what changed, the newest first
  landfall dora                   # how often, how fast, how well
  landfall clusters               # who reports, and when each was last heard of

Be the platform team: edit a ConfigMap, and watch it reach the hosts that it is for.

  cd {repos}/control-plane
  sed -i 's/restricted-host/restricted-2/' cluster-types/east-us/restricted/restricted-config.yaml
  git commit -qam 'Another database for what is restricted' && edit=$(git rev-parse HEAD)
  until made=$(git -C {platform} log -1 --format=%H --grep $edit dev) && [ "$made" ]; do sleep 1; done
  git -C {platform} --no-pager show --stat $made
  landfall gate --repo {platform} --ref dev --path drone --commit $made
  grep -r DATABASE_URL {hosts}/*/root/running

Ask why, and what an edit would do that is not committed:

  landfall explain dev/drone/hello-world-app-functional-test --base $PWD@main --control-plane $PWD@dev
  curl -s {url}/api/v1/assignments; echo
  sed -i 's/ENVIRONMENT: Dev/ENVIRONMENT: Development/' configs/dev-config.yaml
  landfall schedule --environment dev --base $PWD@main --control-plane . --out {platform}@dev --dry-run --diff
  git checkout -q configs/dev-config.yaml

Be the application team: release a version.

  cd {application}
  sed -i 's/1\.2\.1/1.3.0/' functional-test/service.env descriptors/functional-test.yaml
  git commit -qam 'hello-world 1.3.0'
  landfall gate --repo $PWD --ref dev --path functional-test --commit $(git rev-parse HEAD)

The whole API: {url}/openapi.json`

// suggest says what to try next.
func (t *story) suggest() {
	sayf("%s", strings.NewReplacer(
		"{url}", t.url, "{bin}", t.programs.bin, "{repos}", t.repos.dir, "{platform}", t.repos.path(platform),
		"{application}", t.repos.path(application), "{hosts}", t.dir+"/hosts",
	).Replace(suggestions))
}
