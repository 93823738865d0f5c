/** Streams every object of a git repository. Runs the program git. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

export interface GitObject {
  readonly id: string;
  readonly type: string;
  /** The path at which the object first appears in the history. For a tag, its name. For a commit, ''. */
  readonly path: string;
}

export interface Piece {
  readonly object: GitObject;
  readonly first: boolean;
  readonly bytes: Buffer;
}

/** The maximum number of objects that were requested from git but not read yet. */
const askedMax = 1_000;
const errorLengthMax = 500;

/** Keeps git from running programs that the repository's configuration names. */
const safely = ['-c', 'core.fsmonitor=false', '--no-pager', '--no-replace-objects'];

interface Git {
  readonly process: ChildProcess;
  /** Waits until git has ended. If git failed, throws an error with git's stderr. */
  ended(): Promise<void>;
}

function git(root: string, args: readonly string[]): Git {
  const process = spawn('git', [...safely, '-C', root, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  process.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(0, errorLengthMax);
  });
  const closed = new Promise<number | null | Error>((resolve) => {
    process.once('close', resolve);
    process.once('error', resolve);
  });
  return {
    process,
    async ended() {
      const code = await closed;
      if (code instanceof Error) throw new Error(`git cannot be run: ${code.message}`);
      if (code !== 0) throw new Error(`git failed: ${said.trim()}`);
    },
  };
}

/** Yields all objects that branches, tags, the stash, the reflog and the index contain, each object once. */
export async function* readObjects(root: string): AsyncGenerator<Piece> {
  const list = git(root, ['rev-list', '--objects', '--all', '--reflog', '--indexed-objects']);
  const cat = git(root, ['cat-file', '--batch']);
  const paths: string[] = [];
  let wake = () => {};
  cat.process.stdin?.on('error', () => undefined);

  async function ask(): Promise<void> {
    const { stdout } = list.process;
    const { stdin } = cat.process;
    if (!stdout || !stdin) return;
    for await (const line of createInterface({ input: stdout })) {
      const space = line.indexOf(' ');
      paths.push(space < 0 ? '' : line.slice(space + 1));
      if (!stdin.write(`${space < 0 ? line : line.slice(0, space)}\n`))
        await Promise.race([once(stdin, 'drain'), once(stdin, 'close')]);
      while (paths.length >= askedMax && !stdin.destroyed)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
    await list.ended();
    stdin.end();
  }

  const asking = ask();
  asking.catch(() => cat.process.kill());
  try {
    yield* parts(cat.process.stdout as AsyncIterable<Buffer>, () => {
      const path = paths.shift() ?? '';
      wake();
      return path;
    });
    await asking;
    await cat.ended();
  } finally {
    list.process.kill();
    cat.process.kill();
    wake();
  }
}

/**
 * Parses the output of `cat-file --batch`. For each object, it has a line `<id> <type> <size>`, then the content and a
 * line end.
 */
async function* parts(output: AsyncIterable<Buffer>, nextPath: () => string): AsyncGenerator<Piece> {
  let head = '';
  let object: GitObject | null = null;
  let left = 0;
  let first = false;
  for await (const chunk of output) {
    for (let at = 0; at < chunk.length; ) {
      if (object === null) {
        const end = chunk.indexOf(10, at);
        head += chunk.toString('latin1', at, end < 0 ? chunk.length : end);
        if (end < 0) break;
        at = end + 1;
        const [id = '', type = '', size = ''] = head.split(' ');
        head = '';
        const path = nextPath();
        // For an object that git does not have, git prints `<id> missing` and no content.
        if (!/^\d+$/.test(size)) continue;
        object = { id, type, path };
        left = Number(size);
        first = true;
      } else if (left > 0) {
        const bytes = chunk.subarray(at, at + left);
        yield { object, first, bytes };
        first = false;
        at += bytes.length;
        left -= bytes.length;
      } else {
        at++;
        object = null;
      }
    }
  }
}

/** Returns the oldest commit with a file of this content, or the content's id if there is none. */
export async function commitOf(root: string, blob: string): Promise<string> {
  const args = ['log', '--all', '--reflog', '--topo-order', '--no-textconv', '--no-ext-diff', '--format=%H'];
  const { stdout } = await promisify(execFile)(
    'git',
    [...safely, '-C', root, ...args, `--find-object=${blob}`],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  return stdout.trim().split('\n').at(-1) || blob;
}
