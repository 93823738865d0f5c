/** Renders the Markdown documents to the pages under `/docs`, with an index for the search. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Marked } from 'marked';

/** The guides in the order of the menu. The other documents follow, sorted by name. */
const order = [
  'bots',
  'testing_bots',
  'api',
  'behaviour',
  'interface',
  'operating',
  'settings',
  'growing',
  'postgres',
];

const isMarkdown = (name) => name.endsWith('.md');
const bare = (text) =>
  text
    .replace(/<[^>]*>|[`*]/g, '')
    .replace(/&amp;/g, '&')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'");
/** Returns the anchor id that GitHub generates for a heading. */
const slug = (text) =>
  bare(text)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');

/** Returns each document that becomes a page: its file in the repository, and its path below `/docs`. */
export function documentsOf(root) {
  const listed = (folder) =>
    existsSync(join(root, folder)) ? readdirSync(join(root, folder)).filter(isMarkdown).sort() : [];
  const place = (name) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  const guides = listed('infra/docs').map((file) => file.slice(0, -3));
  guides.sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  return [
    ...guides.map((name) => ({ file: `infra/docs/${name}.md`, path: name, guide: true })),
    ...['infra/observability/runbooks', 'bench/README']
      .filter((name) => existsSync(join(root, `${name}.md`)))
      .map((name) => ({
        file: `${name}.md`,
        path: name.split('/').at(-2) === 'bench' ? 'bench' : 'runbooks',
      })),
    ...listed('infra/decisions').map((file) => ({
      file: `infra/decisions/${file}`,
      path: `decisions/${file.slice(0, -3)}`,
    })),
  ];
}

/** Turns a link to another document into a link to its page. A link to any other file becomes plain text. */
function targetOf(href, file, paths) {
  if (/^(https?:|mailto:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const target = normalize(join(dirname(file), path)).replace(/\/$/, '');
  const known = { 'README.md': '', 'infra/decisions': 'decisions' }[target] ?? paths.get(target);
  if (known === undefined) return null;
  return `/docs${known && `/${known}`}${anchor === undefined ? '' : `#${anchor}`}`;
}

function render(text, file, paths) {
  const headings = [];
  const used = new Map();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const first = slug(html);
        const times = used.get(first) ?? 0;
        used.set(first, times + 1);
        const id = times === 0 ? first : `${first}-${times}`;
        headings.push({ depth, id, title: bare(html) });
        return depth === 1
          ? `<h1 id="${id}">${html}</h1>\n`
          : `<h${depth} id="${id}"><a class="anchor" href="#${id}">${html}</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens);
        const target = targetOf(href, file, paths);
        return target === null ? html : `<a href="${escaped(target)}">${html}</a>`;
      },
    },
  });
  const html = marked
    .parse(text.replace(/<!--[\s\S]*?-->/g, ''))
    .replaceAll('<table>', '<div class="table"><table>')
    .replaceAll('</table>', '</table></div>');
  return { html, headings };
}

function sideOf(pages, current) {
  const item = ({ path, title, headings }) => {
    const here = path === current;
    const inner = headings.filter(({ depth }) => depth === 2);
    const parts = inner.map(({ id, title: name }) => `<li><a href="#${id}">${escaped(name)}</a></li>`);
    const mark = here ? ' aria-current="page"' : '';
    return `<li><a href="/docs/${path}"${mark}>${escaped(title)}</a>${here && parts.length > 0 ? `<ul>${parts.join('')}</ul>` : ''}</li>`;
  };
  const shown = pages.filter(({ guide, path }) => guide || path === current);
  const more = '<li><a href="/docs/decisions">Decisions</a></li>';
  return `<aside class="side"><details open><summary>Contents</summary><ul>${shown.map(item).join('')}${more}</ul></details></aside>`;
}

const listOf = (pages) =>
  `<ul>${pages.map(({ path, title }) => `<li><a href="/docs/${path}">${escaped(title)}</a></li>`).join('')}</ul>`;

/**
 * Writes the pages and `guides.json`. `templates` contains the HTML and scripts of a guide page and of the reference
 * page.
 */
export function writeDocuments(root, target, templates) {
  const documents = documentsOf(root);
  const paths = new Map(documents.map(({ file, path }) => [file, path]));
  const pages = documents.map((document) => {
    const made = render(readFileSync(join(root, document.file), 'utf8'), document.file, paths);
    return { ...document, ...made, title: made.headings[0]?.title ?? document.path };
  });
  const write = (path, title, body, template = templates.guide) => {
    const file = join(target, `${path}.html`);
    mkdirSync(dirname(file), { recursive: true });
    const parts = { TITLE: `${escaped(title)} · Petrel`, BODY: body };
    writeFileSync(
      file,
      template.replace(/\b(TITLE|BODY)\b/g, (name) => parts[name]),
    );
  };
  const framed = (path, html) => `<div class="page">${sideOf(pages, path)}<main>${html}</main></div>`;
  for (const { path, title, html } of pages) write(path, title, framed(path, html));
  const guides = pages.filter(({ guide }) => guide);
  const decisions = pages.filter(({ path }) => path.startsWith('decisions/'));
  write(
    'index',
    'Documentation',
    framed(
      '',
      `<h1>Documentation</h1><p>Petrel is a self-hosted messaging service for bots. The <a href="/docs/reference">API reference</a> has every method, endpoint, parameter and error.</p>${listOf(guides)}`,
    ),
  );
  write('decisions', 'Decisions', framed('decisions', `<h1>Decisions</h1>${listOf(decisions)}`));
  write(
    'reference',
    'API reference',
    '<div id="reference"></div><noscript>The reference needs JavaScript. The document is at <a href="/openapi.json">/openapi.json</a>.</noscript>',
    templates.reference,
  );
  const entries = pages.flatMap(({ path, title, headings }) =>
    headings.map(({ depth, id, title: name }) => ({
      title: name,
      place: path.startsWith('decisions/') ? 'Decision' : 'Guide',
      text: depth === 1 ? '' : title,
      url: `/docs/${path}${depth === 1 ? '' : `#${id}`}`,
    })),
  );
  writeFileSync(join(target, 'guides.json'), JSON.stringify(entries));
}
