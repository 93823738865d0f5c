/** Tests that all citations in code and documents are valid: the cited sections, laws, goals and files must exist. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(path, 'utf8');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => /\.(ts|tsx|mjs|lua|md|sql|yml|yaml|conf|cfg)$/.test(path) && existsSync(path));

/**
 * Returns the section numbers of a document and the numbers of the rules in each section, for example `4.3`, `4.3.5`
 * and `5.8`.
 */
function sections(path: string): Set<string> {
  const found = new Set<string>();
  let section = '';
  for (const line of read(path).split('\n')) {
    const heading = /^#+ (\d+(?:\.\d+)*)\.? /.exec(line)?.[1];
    if (heading) section = heading;
    const rule = /^(\d+)\. /.exec(line)?.[1];
    if (heading) found.add(heading);
    else if (rule) found.add(section ? `${section}.${rule}` : rule);
  }
  return found;
}

const documents: Readonly<Record<string, ReadonlySet<string>>> = {
  interface: sections('infra/docs/interface.md'),
  behaviour: sections('infra/docs/behaviour.md'),
  law: sections('infra/docs/architecture.md'),
};
const goals = new Set(
  [...read('infra/docs/benchmarks.md').matchAll(/^\| ([PR]\d+) \|/gm)].map(([, name]) => name),
);

/**
 * Returns each citation in a text as a pair of document and section. For example, `interface §4, §7` yields two pairs.
 */
function citations(text: string): [document: string, section: string][] {
  const cited: [string, string][] = [];
  for (const [, name = '', list = ''] of text.matchAll(
    /\b(interface|behaviour)(?:\.md)?((?:,? (?:and )?§ ?\d+(?:\.\d+)*)+)/gi,
  ))
    for (const [, section = ''] of list.matchAll(/§ ?(\d+(?:\.\d+)*)/g))
      cited.push([name.toLowerCase(), section]);
  for (const [, section = ''] of text.matchAll(/\blaw (\d+)\b/gi)) cited.push(['law', section]);
  return cited;
}

test('every cited section and numbered law exists', () => {
  const cited = files.flatMap((path) =>
    citations(read(path)).map(([name, section]) => ({ path, name, section })),
  );
  // The interface tests cite the sections of the interface without its name, for example `§4.3`.
  for (const path of files.filter((file) => file.startsWith('test/interface/')))
    for (const [, section = ''] of read(path).matchAll(/(?<!behaviour )§ ?(\d+(?:\.\d+)*)/g))
      cited.push({ path, name: 'interface', section });
  expect(cited.length).toBeGreaterThan(100);
  expect(cited.filter(({ name, section }) => !documents[name]?.has(section))).toEqual([]);
});

test('every cited goal exists', () => {
  const percentiles = ['P50', 'P90', 'P95', 'P99'];
  const cited = files.flatMap((path) =>
    [...read(path).matchAll(/(?<![\w/.%#'-])([PR]\d{1,2})(?![\w%])/g)].map(([, name = '']) => ({
      path,
      name,
    })),
  );
  expect(cited.length).toBeGreaterThan(50);
  expect(cited.filter(({ name }) => !goals.has(name) && !percentiles.includes(name))).toEqual([]);
});

test('every relative link of a document resolves', () => {
  const broken = files
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...read(path).matchAll(/\]\((?!https?:|mailto:|tg:|#)([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map(([, link = '']) => ({ path, link }))
        .filter(({ link }) => !existsSync(join(dirname(path), link))),
    );
  expect(broken).toEqual([]);
});
