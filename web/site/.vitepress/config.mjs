// The documentation as a site: docs/ as it is, behind the README, with search in the browser. scripts/site.sh copies both
// into .src and builds them into out/site.
import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';

const docs = new URL('../.src/', import.meta.url).pathname;
const source = 'https://github.com/sluice-serving/sluice/blob/main/';

/** page is a page of the sidebar, under its own heading. */
function page(folder, name) {
  const heading = readFileSync(docs + folder + name, 'utf8').match(/^# (.*)$/m);
  return { text: heading ? heading[1] : name, link: '/' + folder + name.replace(/\.md$/, '') };
}
const pages = (folder) => readdirSync(docs + folder).filter((n) => n.endsWith('.md')).sort().map((n) => page(folder, n));

export default defineConfig({
  title: 'sluice',
  description: 'Serves machine-learning models under latency objectives.',
  srcDir: '.src',
  outDir: '../../out/site',
  cacheDir: '../../.cache/site',
  rewrites: { 'designs/README.md': 'designs/index.md' },
  // The documents lead to files of the repository, too, which are no pages.
  ignoreDeadLinks: true,
  markdown: {
    html: false, // <NAME> is a placeholder
    config(md) {
      const rule = md.renderer.rules.link_open ?? ((tokens, at, options, _env, self) => self.renderToken(tokens, at, options));
      md.renderer.rules.link_open = (tokens, at, options, env, self) => {
        const href = tokens[at].attrGet('href') ?? '';
        const depth = (env.relativePath?.match(/\//g) ?? []).length;
        const outside = depth === 0 ? /^(\.\.\/|(?!README)[A-Z_]+\.md|LICENSE)/.test(href) && href.replace(/^\.\.\//, '')
          : href.startsWith('../'.repeat(depth + 1)) && href.replaceAll('../', '');
        if (outside) tokens[at].attrSet('href', source + outside);
        return rule(tokens, at, options, env, self);
      };
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: [
      { text: 'Guides and reference', items: pages('') },
      { text: 'The papers', collapsed: true, items: pages('papers/') },
      { text: 'Decisions', collapsed: true, items: pages('designs/') },
    ],
    outline: [2, 3],
  },
});
