/**
 * The image of infra/deploy/Dockerfile, built by buildah without a container engine or a registry. Its base is the
 * Debian 13 root of infra/build/debian13.mjs with Node.js 24. Needs buildah and everything that debian13.mjs needs.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './servers.js';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const debian13 = join(checkout, 'infra', 'build', 'debian13.mjs');
const debianRoot = '/var/cache/petrel/debian13';

function must(command: string, ...args: readonly string[]): string {
  const ran = spawnSync(command, args, { cwd: checkout, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  if (ran.status === 0) return ran.stdout.trim();
  throw new Error(`${command} ${args.join(' ')}: ${ran.error?.message ?? ''}\n${ran.stdout}${ran.stderr}`);
}

/** Returns why this machine cannot build the image, or undefined if it can. */
function whyNoImage(): string | undefined {
  const able = spawnSync(process.execPath, [debian13, '--available'], { encoding: 'utf8' });
  if (able.status !== 0) return able.stderr.trim();
  return spawnSync('buildah', ['--version']).status === 0 ? undefined : 'buildah is not installed';
}

export interface Image {
  /** The object `config` of the image, in the Docker format. */
  readonly config: {
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly User: string;
    readonly WorkingDir: string;
    readonly StopSignal: string;
    readonly Healthcheck?: { readonly Test: readonly string[] };
    readonly Volumes: Readonly<Record<string, object>>;
  };
  readonly files: string;
  readonly addedBytes: number;
  /**
   * Starts a command as a container engine does: with the image’s user, as process 1, without capabilities, and with a
   * read-only root that has its own `/tmp`. The folder `volume` is mounted as the image’s volume. The container uses
   * the network of this machine.
   */
  start(command: readonly string[], env: Readonly<Record<string, string>>, volume: string): ChildProcess;
  remove(): void;
}

export const pidOf = ({ pid }: ChildProcess): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);

const bytesOf = (folder: string) =>
  Number(must('du', '--summarize', '--block-size=1', folder).split('\t')[0]);

/**
 * Builds the contents of `node:24-trixie-slim`: Node.js and npm in /usr/local, the user `node`, no Redis. Returns its
 * size in bytes.
 */
function makeBase(buildah: (...args: string[]) => string, name: string): number {
  must(process.execPath, debian13, '--node', '24', '--', 'true');
  const base = buildah('from', 'scratch');
  const files = buildah('mount', base);
  const left = ['srv', 'opt', 'proc', 'dev', 'tmp'].map((each) => `--exclude=./${each}/*`).join(' ');
  must('sh', '-c', `tar -C ${debianRoot} ${left} -cf - . | tar -C ${files} -xf -`);
  must('cp', '-a', join(debianRoot, 'opt', 'npm'), join(files, 'opt'));
  must('cp', '-aT', join(debianRoot, 'opt', 'node24'), join(files, 'usr', 'local'));
  const finish = [
    'apt-get purge -qq -y --autoremove redis-server redis-tools git curl procps',
    'rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*',
    'useradd --uid 1000 --create-home node',
  ].join(' && ');
  buildah('run', '--isolation', 'chroot', base, '--', 'sh', '-ec', finish);
  // The build trusts the authorities of this machine, because the registry may have a certificate of a private
  // authority.
  buildah('config', '--env', 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', base);
  const bytes = bytesOf(files);
  buildah('commit', '--rm', '--quiet', base, name);
  return bytes;
}

const script = `
  mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"
  mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" && mount --bind "$1" "$0$2"
  root=$0 user=$3 folder=$4; shift 4
  exec chroot --userspec="$user" "$root" env -C "$folder" setpriv --no-new-privs "$@"`;

/** Builds the image in separate storage, and downloads the packages of the image again. This takes some minutes. */
export function buildImage(): Image {
  const reason = whyNoImage();
  if (reason !== undefined) throw new Error(`the image cannot be built here: ${reason}`);
  const folder = temporaryFolder();
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
  const buildah = (...args: string[]) => must('buildah', ...storage, ...args);
  const remove = () => {
    spawnSync('buildah', [...storage, 'umount', '--all']);
    spawnSync('buildah', [...storage, 'rm', '--all']);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const base = 'localhost/petrel-base';
    const baseBytes = makeBase(buildah, base);
    buildah(
      ...[
        'bud',
        '--isolation',
        'chroot',
        '--format',
        'docker',
        '--pull-never',
        '--build-arg',
        `BASE=${base}`,
      ],
      ...['--file', 'infra/deploy/Dockerfile', '--ignorefile', 'infra/deploy/Dockerfile.dockerignore'],
      ...['--tag', 'petrel', '.'],
    );
    const { config } = JSON.parse(buildah('inspect', '--type', 'image', 'petrel')).Docker;
    const container = buildah('from', '--pull-never', 'petrel');
    const files = buildah('mount', container);
    const [volume = ''] = Object.keys(config.Volumes);
    const [, uid, gid] =
      new RegExp(`^${config.User}:[^:]*:(\\d+):(\\d+):`, 'm').exec(
        readFileSync(join(files, 'etc', 'passwd'), 'utf8'),
      ) ?? [];
    const ofImage = Object.fromEntries(
      (config.Env as string[]).map((each) => [each.split('=')[0], each.slice(each.indexOf('=') + 1)]),
    );
    return {
      config,
      files,
      addedBytes: bytesOf(files) - baseBytes,
      start(command, env, from) {
        must('chown', `${uid}:${gid}`, from);
        const apart = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
        const args = [
          'sh',
          '-ec',
          script,
          files,
          from,
          volume,
          `${uid}:${gid}`,
          config.WorkingDir,
          ...command,
        ];
        return spawn('unshare', [...apart, ...args], { env: { ...ofImage, ...env } });
      },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}
