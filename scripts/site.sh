#!/usr/bin/env bash
# site.sh builds the documentation as static pages with search into out/site, by VitePress. The README is its first page.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh npm

stamp=web/site/node_modules/.sluice-stamp
if command -v sha256sum >/dev/null 2>&1; then
  lock=$(sha256sum web/site/package-lock.json | cut -d' ' -f1)
else
  lock=$(shasum -a 256 web/site/package-lock.json | cut -d' ' -f1)
fi
if [ ! -f $stamp ] || [ "$(cat $stamp)" != "$lock" ]; then
  echo "site: fetching VitePress from the npm registry (about 110 MB, once)" >&2
  (cd web/site && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  echo "$lock" >$stamp
fi

src=web/site/.src
rm -rf $src
cp -r docs $src
sed -e 's#](docs/#](#g' README.md >$src/index.md
(cd web/site && node_modules/.bin/vitepress build . >&2)
rm -rf $src
echo "site: built into out/site, open out/site/index.html through a server: python3 -m http.server -d out/site"
