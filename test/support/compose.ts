/**
 * Runs the services of a Compose file without a container engine, from software installed here. Each service has its
 * own network, process and mount namespaces. The addresses, names, volumes, environment, capabilities and health checks
 * are taken from the file. Needs Linux and root.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { findBinaries, postgresUser } from '../../src/dev/postgres_binaries.js';
import { exitOf } from '../../src/dev/processes.js';
import { temporaryFolder } from './servers.js';

// biome-ignore lint/suspicious/noExplicitAny: what a YAML file holds
type Loose = any;

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const healthy_ms_max = 180_000;
const stop_ms_max = 75_000;

interface Stand {
  readonly entry: readonly string[];
  readonly folder: string;
  readonly user: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly health?: readonly string[];
  readonly stopSignal?: NodeJS.Signals;
}

/** Returns the build of this checkout, with the settings of the Dockerfile. */
function petrel(): Stand {
  const text = readFileSync(join(checkout, 'infra/deploy/Dockerfile'), 'utf8').replaceAll('\\\n', ' ');
  const last = text.slice(text.lastIndexOf('\nFROM'));
  const [, set = ''] = /^ENV (.*)$/m.exec(last) ?? [];
  const pairs = [...set.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)];
  const list = (what: RegExp) => JSON.parse(what.exec(last)?.[1] ?? '[]') as string[];
  const withNode = ([, ...args]: string[]) => [process.execPath, ...args];
  return {
    entry: withNode(list(/^ENTRYPOINT (.*)$/m)),
    folder: checkout,
    user: 1000,
    env: Object.fromEntries(pairs.map(([, name, quoted, plain]) => [name, quoted ?? plain])),
    health: withNode(list(/^HEALTHCHECK .*?CMD (.*)$/m)),
  };
}

/** Initialises the data at the first start, as the official image does. Needs no client programs of PostgreSQL. */
function postgres(): Stand {
  const { initdb, postgres: server } = findBinaries();
  const script = `
    umask 077
    data=/var/lib/postgresql/18
    if [ ! -e $data ]; then
      printf %s "$POSTGRES_PASSWORD" >/tmp/password
      rm -rf $data.new
      ${initdb} --pgdata=$data.new --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --locale=C --encoding=UTF8
      echo "host all all all scram-sha-256" >>$data.new/pg_hba.conf
      echo "CREATE DATABASE $POSTGRES_DB" | ${server} --single -D $data.new postgres
      mv $data.new $data
    fi
    exec ${server} -D $data -c "listen_addresses=*" -c unix_socket_directories=/tmp`;
  const connects = `require('net').connect(5432, '127.0.0.1', () => process.exit(0)).on('error', () => process.exit(1))`;
  return {
    entry: ['sh', '-euc', script],
    folder: '/',
    user: postgresUser()?.uid ?? 0,
    health: [process.execPath, '-e', connects],
    stopSignal: 'SIGINT',
  };
}

const stands: Readonly<Record<string, () => Stand>> = {
  // This container stands for a plain machine on which a test runs commands.
  debian: () => ({
    entry: ['bash', '-c', 'while :; do sleep 1; done'],
    folder: '/',
    user: 0,
    stopSignal: 'SIGKILL',
  }),
  petrel,
  postgres,
  redis: () => ({ entry: [], folder: '/data', user: 0 }),
  // Starts the service late, as on a busy machine. Clients must wait for its health check.
  haproxy: () => ({
    entry: ['sh', '-c', 'sleep 2; exec haproxy -W -db -f /usr/local/etc/haproxy/haproxy.cfg'],
    folder: '/',
    user: 0,
  }),
};

/**
 * The arguments are: a folder for mounts, the hosts file, `ro` or `rw`, the working directory, any number of
 * `source:target`, `--`, and a command.
 */
const enter = `
  root=$0/root hosts=$1 access=$2 folder=$3
  mount -t tmpfs tmpfs "$0"; mkdir "$0/upper" "$0/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$root"
  mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/tmp"
  mount --bind "$hosts" "$root/etc/hosts"; mkdir -p "$root$folder"
  shift 2
  while shift; [ "$1" != -- ]; do
    from=\${1%%:*} to=$root\${1#*:}
    if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "\${to%/*}"; touch "$to"; fi
    mount --bind "$from" "$to"
  done
  shift
  if [ $access = ro ]; then mount -o remount,ro "$root"; fi
  exec chroot "$root" "$@"`;

function must(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/** Reads the file, and replaces its variables and merge keys. Throws if a required variable is missing. */
export function readCompose(path: string, variables: Readonly<Record<string, string>>): Loose {
  const filled = (text: string) =>
    text.replace(/\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})/g, (_, dollar, name, kind, more) => {
      if (dollar) return '$';
      const value = variables[name];
      if (value) return value;
      if (kind === '?') throw new Error(`${name}: ${more}`);
      return more ?? '';
    });
  const file = parse(readFileSync(path, 'utf8'), { merge: true });
  return JSON.parse(JSON.stringify(file), (_, value) => (typeof value === 'string' ? filled(value) : value));
}

interface Running {
  readonly process: ChildProcess;
  readonly exited: Promise<string>;
}

let networksMade = 0;

/** One container. A service with replicas has several containers. */
class Container {
  readonly name: string;
  readonly service: Loose;
  readonly stand: Stand;
  readonly #place: string;
  readonly #mounts: readonly string[];
  #running: Running | undefined;
  #killed = false;
  address = '';
  log = '';

  constructor(name: string, service: Loose, place: string, mounts: readonly string[]) {
    this.name = name;
    this.service = service;
    this.stand = (stands[service.image.split(':')[0]] as () => Stand)();
    this.#place = place;
    this.#mounts = mounts;
  }

  get alive(): boolean {
    return this.#running !== undefined;
  }

  #env(): Record<string, string> {
    return { PATH: process.env.PATH ?? '', ...this.stand.env, ...this.service.environment };
  }

  start(bridge: string): Promise<string> {
    if (this.#killed) throw new Error(`${this.name} was removed`);
    const { stand, service } = this;
    const network = `${bridge}x${++networksMade}`;
    const mounts = join(this.#place, `mounts.${this.name}`);
    mkdirSync(mounts, { recursive: true });
    must('ip', 'netns', 'add', network);
    must('ip', 'link', 'add', network, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', network);
    must('ip', 'link', 'set', network, 'master', bridge, 'up');
    const inside = ['-n', network];
    must('ip', ...inside, 'address', 'add', `${this.address}/24`, 'dev', 'eth0');
    for (const device of ['lo', 'eth0']) must('ip', ...inside, 'link', 'set', device, 'up');
    const more = (service.cap_add ?? []).map((each: string) => `,+${each.toLowerCase()}`).join('');
    const uid = service.user === 'root' ? 0 : stand.user;
    const child = spawn(
      'setpriv',
      [
        // If the test worker is killed, the containers end too.
        ...['--pdeathsig', 'KILL', 'ip', 'netns', 'exec', network],
        ...['unshare', '--mount', '--pid', '--fork', '--kill-child'],
        ...['--propagation', 'private', 'sh', '-euc', enter, mounts, join(this.#place, 'hosts')],
        ...[service.read_only ? 'ro' : 'rw', stand.folder, ...this.#mounts, '--', 'setpriv'],
        ...(service.cap_drop?.includes('ALL') ? [`--bounding-set=-all${more}`] : []),
        ...[`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs'],
        ...['env', '-C', stand.folder, ...(service.entrypoint ?? stand.entry), ...(service.command ?? [])],
      ],
      { env: this.#env(), stdio: ['ignore', 'pipe', 'pipe'] },
    );
    for (const output of [child.stdout, child.stderr])
      output?.on('data', (chunk) => {
        this.log = `${this.log}${chunk}`.slice(-200_000);
      });
    const exited = exitOf(child).then((how) => {
      this.#running = undefined;
      must('ip', 'netns', 'del', network);
      spawnSync('ip', ['link', 'del', network]);
      return how;
    });
    this.#running = { process: child, exited };
    return exited;
  }

  /** The host pid of the container's process 1. */
  #pid(): string {
    const pid = this.#running?.process.pid;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  }

  /** Sends a signal to the container's process 1. When the container has exited, all of its processes have ended. */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#running && Number(this.#pid());
    if (pid) process.kill(pid, signal);
    // Kills the program that starts the container, because the container's process 1 does not exist yet.
    else if (signal === 'SIGKILL') this.#running?.process.kill(signal);
  }

  /**
   * Runs a command as root in the container. Resolves with the output when the command has ended. The background
   * processes of the command keep running.
   */
  async run(...command: readonly string[]): Promise<{ readonly how: string; readonly out: string }> {
    if (!this.#running) return { how: 'not running', out: '' };
    const into = ['--target', this.#pid(), '--mount', '--pid', '--net', '--root', '--wd'];
    const child = spawn('nsenter', [...into, ...command], { env: this.#env() });
    child.stdin.end();
    let out = '';
    for (const output of [child.stdout, child.stderr])
      output.on('data', (chunk) => {
        out += chunk;
      });
    const how = await exitOf(child);
    for (const output of [child.stdout, child.stderr]) output.destroy();
    return { how, out };
  }

  async #passes(check: readonly string[]): Promise<boolean> {
    return (await this.run(...check)).how === 'exit code 0';
  }

  async becomesHealthy(): Promise<void> {
    const [kind, ...own] = this.service.healthcheck?.test ?? [];
    const check = this.stand.health ?? (kind === 'CMD' ? own : ['true']);
    for (const end = performance.now() + healthy_ms_max; !(await this.#passes(check)); await sleep(100))
      if (!this.alive || performance.now() > end)
        throw new Error(`${this.name} is not healthy:\n${this.log}`);
  }

  async stop(): Promise<string> {
    if (!this.#running) return 'not running';
    const { exited } = this.#running;
    this.#signal(this.stand.stopSignal ?? 'SIGTERM');
    const late = setTimeout(() => this.#signal('SIGKILL'), stop_ms_max);
    const how = await exited;
    clearTimeout(late);
    return how;
  }

  /** Kills the container immediately. It cannot be started again. */
  async kill(): Promise<void> {
    this.#killed = true;
    this.#signal('SIGKILL');
    await this.#running?.exited;
  }
}

export interface Composition {
  readonly containers: ReadonlyMap<string, Container>;
  /**
   * Starts each service when its dependencies are ready. Throws with the log of a service that is not ready in time.
   */
  up(): Promise<void>;
  /**
   * Stops all containers cleanly, dependents first. Volumes stay, but dynamic addresses may change at the next `up`.
   */
  down(): Promise<void>;
  /**
   * Stops a container cleanly and starts it again. Resolves when the container is healthy again, with the exit code or
   * signal of the stopped container.
   */
  restart(container: string): Promise<string>;
  /** Kills all containers, even while they start or stop, and removes volumes and networks. */
  remove(): Promise<void>;
}

function removeLeftNetworks(): void {
  const left = (name: string) => {
    const pid = /^pt(\d+)/.exec(name)?.[1];
    return pid !== undefined && !existsSync(`/proc/${pid}`);
  };
  const listed = (...args: string[]) =>
    (spawnSync('ip', args, { encoding: 'utf8' }).stdout.match(/\bpt\d+(x\d+)?\b/g) ?? []).filter(left);
  for (const name of listed('netns', 'list')) spawnSync('ip', ['netns', 'del', name]);
  for (const name of listed('-brief', 'link', 'show')) spawnSync('ip', ['link', 'del', name]);
}

export function compose(path: string, variables: Readonly<Record<string, string>>): Composition {
  const { services, networks } = readCompose(path, variables) as Loose;
  removeLeftNetworks();
  const place = temporaryFolder();
  const bridge = `pt${process.pid}`;
  const [{ subnet, ip_range }] = networks.default.ipam.config;
  const network = subnet.replace(/\d+\/24$/, '');
  let nextFree = Number(/(\d+)\/\d+$/.exec(ip_range ?? '.2/24')?.[1]);
  const containers = new Map<string, Container>();
  const ofService = new Map<string, Container[]>();

  const mountOf = (volume: string) => {
    const [from = '', to] = volume.split(':');
    if (isAbsolute(from) || from.startsWith('.')) return `${resolve(path, '..', from)}:${to}`;
    const folder = join(place, from);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    return `${folder}:${to}`;
  };
  for (const [name, service] of Object.entries<Loose>(services)) {
    const own = Array.from({ length: service.deploy?.replicas ?? 1 }, (_, i) => {
      const mounts = (service.volumes ?? []).map(mountOf);
      const container = new Container(`${name}.${i + 1}`, service, place, mounts);
      containers.set(container.name, container);
      return container;
    });
    ofService.set(name, own);
  }

  function giveAddresses(): void {
    for (const container of containers.values())
      container.address = container.service.networks?.default.ipv4_address ?? `${network}${nextFree++}`;
    const lines = [...ofService].flatMap(([name, own]) => own.map(({ address }) => `${address} ${name}\n`));
    writeFileSync(join(place, 'hosts'), `127.0.0.1 localhost\n${lines.join('')}`);
  }

  const settled = new Map<string, Promise<unknown>>();
  function startService(name: string): Promise<unknown> {
    const begun = settled.get(name) ?? begin(name);
    settled.set(name, begun);
    return begun;
  }
  async function begin(name: string): Promise<void> {
    const { depends_on = {}, restart } = services[name];
    await Promise.all(Object.keys(depends_on).map(startService));
    await Promise.all(
      (ofService.get(name) as Container[]).map(async (container) => {
        const exited = container.start(bridge);
        if (restart !== 'no') return container.becomesHealthy();
        const how = await exited;
        if (how !== 'exit code 0') throw new Error(`${container.name} ended with ${how}:\n${container.log}`);
      }),
    );
  }

  async function stopAll(): Promise<void> {
    await Promise.allSettled(settled.values());
    const stopped = new Map<string, Promise<unknown>>();
    const stopService = (name: string): Promise<unknown> => {
      const users = Object.keys(services).filter((other) => services[other].depends_on?.[name]);
      const ending =
        stopped.get(name) ??
        Promise.all(users.map(stopService)).then(() =>
          Promise.all((ofService.get(name) as Container[]).map((each) => each.stop())),
        );
      stopped.set(name, ending);
      return ending;
    };
    await Promise.all(Object.keys(services).map(stopService));
    spawnSync('ip', ['link', 'del', bridge]);
  }

  return {
    containers,
    async up() {
      giveAddresses();
      must('ip', 'link', 'add', bridge, 'type', 'bridge');
      must('ip', 'address', 'add', `${network}1/24`, 'dev', bridge);
      must('ip', 'link', 'set', bridge, 'up');
      settled.clear();
      await Promise.all(Object.keys(services).map(startService));
    },
    down: stopAll,
    async restart(name) {
      const container = containers.get(name) as Container;
      const how = await container.stop();
      container.start(bridge);
      await container.becomesHealthy();
      return how;
    },
    async remove() {
      await Promise.all([...containers.values()].map((each) => each.kill()));
      await Promise.allSettled(settled.values());
      spawnSync('ip', ['link', 'del', bridge]);
      rmSync(place, { recursive: true, force: true });
    },
  };
}
