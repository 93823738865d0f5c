/**
 * The tasks `shards list`, `shards move` and `shards undo`. A move has these steps, each of which may be repeated:
 *
 * - copy: PostgreSQL copies the rows and replicates changes. Everything else continues.
 * - pause: The map tells flushers to skip the partitions. Changes wait in the journals.
 * - fence: The source refuses changes to the partitions. The target receives the remaining rows, and each partition's
 *   own row last.
 * - switch: The map names the target. The partitions stay paused until no process uses an older map, so that nobody
 *   reads outdated rows.
 * - clean: The subscription ends, and the source deletes its rows.
 */

import type { Pool } from '../postgres/pool.js';
import * as copy from '../postgres/shard_copy.js';
import * as moves from '../postgres/shard_moves.js';
import { awaitEpoch, changeMap, loadMap, type Shard, shardedTables } from '../postgres/shards.js';
import { type Backends, StartError } from '../processes/backends.js';
import { readNodes } from '../processes/node.js';
import { shardName } from '../processes/shards.js';
import { rangesText } from '../rules/number_ranges.js';
import type { Time } from '../time.js';

type Say = (line: string) => void;

/** Flushers are paused only when the target's replication lags by at most this many bytes. */
const lagBytesMax = 1_048_576;
/**
 * How long the target may take to catch up while partitions are paused, in ms. After that, the source serves the
 * partitions again.
 */
const catchUpMsMax = 60_000;
const nodesMsMax = 12_000;
const claimMsMax = 15_000;
const poll_ms = 50;

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const partitionsText = (partitions: readonly number[]) =>
  `partition${partitions.length === 1 ? '' : 's'} ${rangesText(partitions)}`;
const again = ({ partitions, target }: moves.Move) =>
  `"petrel shards move ${rangesText(partitions).replaceAll(',', '')} ${target}"`;

async function nodeNames(backends: Backends): Promise<(node: string) => string> {
  const known = new Map((await readNodes(backends)).map((node) => [node.id, node]));
  return (id) => {
    const node = known.get(id);
    return node === undefined
      ? `a process that just starts (${id})`
      : `${node.role} on ${node.host}, pid ${node.pid}`;
  };
}

/** Checks that every process knows the target shard, and that it reports which version of the shard map it uses. */
async function checkNodes(backends: Backends, target: number): Promise<void> {
  const { time } = backends;
  const began = time.monotonic();
  for (;;) {
    const [stranger] = await moves.nodesWithout(backends.pool, target);
    if (stranger === undefined) return;
    if (time.monotonic() - began > nodesMsMax) {
      const name = (await nodeNames(backends))(stranger.node);
      throw new StartError(
        stranger.follows
          ? `${name} has no ${shardName(target)}: set the same DATABASE_SHARDS for all processes and restart them`
          : `${name} does not report which map it follows: it runs an older version`,
      );
    }
    // Waits, because a process that has just started may not have reported yet.
    await time.sleep(200);
  }
}

interface Runner {
  readonly id: string;
  readonly time: Time;
  readonly control: Pool;
  readonly control0: Shard;
  readonly source: Shard;
  readonly target: Shard;
  readonly share: copy.Share;
  readonly conninfo: string;
  readonly say: Say;
}

const shardOf = ({ shards }: Pick<Backends, 'shards'>, id: number): Shard => {
  const shard = shards.all.find((each) => each.id === id);
  if (shard === undefined) throw new StartError(`DATABASE_SHARDS does not name ${id}`);
  return shard;
};

const conninfoOf = ({ config }: Backends, source: Shard, from?: string): string =>
  copy.conninfoOf(from ?? (source.id === 0 ? (config.DATABASE_URL as string) : source.url));

function runnerOf(backends: Backends, move: moves.Move, id: string, say: Say, from?: string): Runner {
  const [source, target] = [shardOf(backends, move.source), shardOf(backends, move.target)];
  const { installation, keys, time, random } = backends;
  return {
    id,
    say,
    time,
    source,
    target,
    control: backends.pool,
    control0: backends.shards.control,
    share: copy.shareOf({ ...move, installation, count: keys.partitions.count, runner: id, time, random }),
    conninfo: conninfoOf(backends, source, from),
  };
}

/**
 * Claims both databases for this process. They then refuse changes from any process that ran the move before. The
 * caller must check afterwards that it still has the claim on the move.
 */
async function claimShards({ source, target, share }: Runner): Promise<void> {
  await copy.claimShard(source, share);
  await copy.claimShard(target, share);
}

const place = ({ control, control0, share, id }: Runner, shard: Shard, paused: boolean): Promise<number> =>
  changeMap(
    control,
    share.partitions.map((partition) => ({ partition, shard: shard.id, paused })),
    control0.history,
    (tx) => moves.holdMove(tx, id),
  );

async function copyRows(runner: Runner): Promise<void> {
  const { control, id, source, target, share, conninfo, say, time } = runner;
  const mayHave = await copy.markAway(target, share);
  if (!(await copy.isCopying(source, target, share))) {
    await copy.endCopy(source, target, share);
    if (mayHave) await copy.deleteRows(target, share);
    await copy.beginCopy(source, target, share, conninfo);
  }
  let lastLine = '';
  let failed = 0;
  for (;;) {
    // Stops if another process has taken over the move.
    await moves.advanceMove(control, id, 'copy');
    const { tables, ready, errors } = await copy.copyState(target, share);
    const line = `copying      ${ready} of ${tables} tables`;
    if (line !== lastLine) say(line);
    lastLine = line;
    if (errors > failed)
      say(`             it failed ${errors} times: the log of ${shardName(target.id)} says why`);
    failed = errors;
    if (tables > 0 && ready === tables) {
      const lag = await copy.lagOf(source, share, await copy.positionOf(source.pool));
      if (lag <= lagBytesMax) return;
    }
    await time.sleep(250);
  }
}

async function pause(runner: Runner): Promise<void> {
  const { source, share, control, say, time } = runner;
  while (await copy.isRewriting(source, share.partitions)) {
    say('             waiting until the changes that a restored source had lost are written again');
    await time.sleep(1_000);
  }
  await awaitEpoch(control, await place(runner, source, true), time);
}

async function resume(runner: Runner): Promise<void> {
  const { control, source, share, id } = runner;
  await copy.unfenceRows(source, share);
  await copy.markPresent(source, share);
  await place(runner, source, false);
  await moves.advanceMove(control, id, 'copy');
}

async function fence(runner: Runner): Promise<void> {
  const { source, target, share, time } = runner;
  const began = time.monotonic();
  await copy.markAway(source, share);
  await copy.fenceRows(source, share);
  const position = await copy.positionOf(source.pool);
  while ((await copy.lagOf(source, share, position)) > 0) {
    if (time.monotonic() - began > catchUpMsMax) {
      await resume(runner);
      throw new StartError(
        `${shardName(target.id)} did not catch up within ${catchUpMsMax / 1_000} s: ${shardName(source.id)} serves ` +
          'the partitions as before, and copying continues. Run the command again',
      );
    }
    await time.sleep(poll_ms);
  }
  if (!(await copy.isCopying(source, target, share))) {
    await resume(runner);
    throw new StartError(
      `another server has replaced ${shardName(target.id)} during the copy: ${shardName(source.id)} serves the ` +
        'partitions as before. Run the command again, which restarts the copy',
    );
  }
  await copy.skipIdentities(source.pool, target.pool);
  await copy.bringPartitions(source, target, share);
}

async function switchMap(runner: Runner): Promise<void> {
  await awaitEpoch(runner.control, await place(runner, runner.target, true), runner.time);
  await copy.markOutdated(runner.source, runner.share);
  await place(runner, runner.target, false);
}

async function clean({ source, target, share, say }: Runner): Promise<void> {
  // Marks the partitions as outdated again, because a standby that lacks the first mark may meanwhile have replaced the
  // source.
  await copy.markOutdated(source, share);
  await copy.endCopy(source, target, share);
  const deleted = await copy.deleteRows(source, share);
  await copy.unfenceRows(source, share);
  say(`deleted      ${deleted} rows in ${shardName(source.id)}`);
}

const work: Readonly<Record<moves.MoveStep, (runner: Runner) => Promise<void>>> = {
  copy: copyRows,
  pause,
  fence,
  switch: switchMap,
  clean,
};

/** Renews the claim on the move while `task` runs, so that no other process takes over the move. */
async function renewing<T>({ pool, time }: Backends, id: string, task: () => Promise<T>): Promise<T> {
  // Ignores a failed renewal. If renewals fail for too long, another process takes over the move.
  const timer = time.every(moves.moveRenewal_ms, () => void moves.renewMove(pool, id).catch(() => {}));
  return task().finally(() => time.cancel(timer));
}

const busy = 'another process is moving partitions: wait until it has ended';

/**
 * Claims the unfinished move. Returns null if there is none. `check` throws if the caller's command does not apply to
 * the move. It runs before the claim, because a claim blocks other processes for seconds.
 */
async function claim(
  { pool, shards, time }: Pick<Backends, 'pool' | 'shards' | 'time'>,
  id: string,
  say: Say,
  check: (move: moves.Move) => void,
): Promise<moves.Move | null> {
  const began = time.monotonic();
  for (let tries = 0; ; tries++) {
    const found = await moves.loadMove(pool);
    if (found === null) return null;
    check(found);
    for (const shard of [found.source, found.target]) shardOf({ shards }, shard);
    const own = await moves.claimMove(pool, id);
    if (own !== null) {
      // Checks the move again, because another move may have begun since the first check.
      check(own);
      return own;
    }
    if (tries === 0) say('waiting      another process is moving partitions, or stopped a moment ago');
    if (time.monotonic() - began > claimMsMax) throw new StartError(busy);
    await time.sleep(500);
  }
}

/** Records a new move. Returns null if the target already has the partitions. Throws a StartError. */
async function begin(
  backends: Backends,
  partitions: readonly number[],
  target: Shard,
  id: string,
  from: string | undefined,
): Promise<moves.Move | null> {
  const { pool } = backends;
  const map = new Map((await loadMap(pool)).rows.map((row) => [row.partition, row.shard]));
  const sources = new Set(partitions.map((partition) => map.get(partition) ?? 0));
  if (sources.size > 1)
    throw new StartError(
      `these partitions are in the shards ${[...sources].join(', ')}: move the partitions of one shard at a time`,
    );
  const source = shardOf(backends, [...sources][0] as number);
  if (source.id === target.id) return null;
  await checkNodes(backends, target.id);
  let step: moves.MoveStep = 'copy';
  const left = await copy.leftFrom(source, partitions);
  const others = left.length > 0 ? backends.shards.all.filter(({ id }) => id !== source.id) : [];
  const moved = await Promise.all(others.map((shard) => copy.presentIn(shard, partitions)));
  // If the source has recorded that the partitions left it, but no other database has served them, the control database
  // has lost its record of an unfinished move. The move then starts again.
  if (left.some(({ outdated }) => outdated) || moved.flat().length > 0) {
    // Another database has already served these partitions. The control database does not know this, because it was
    // restored to a state before an earlier move.
    if ((await copy.presentIn(target, partitions)).length < partitions.length)
      throw new StartError(
        `${shardName(source.id)} has recorded that these partitions have left it, but ${shardName(target.id)} does not have all of them: ` +
          '"petrel shards list" shows which database has which partitions',
      );
    step = 'switch';
  } else {
    const problem = await copy.replicationProblem(
      source,
      target,
      shardName,
      conninfoOf(backends, source, from),
    );
    if (problem !== null) throw new StartError(problem);
  }
  const move = await moves.insertMove(pool, { partitions, source: source.id, target: target.id, step }, id);
  if (move === null) throw new StartError(busy);
  return move;
}

/** `from` is the URL by which the target reaches the source, if it differs from the settings. */
export interface MoveOptions {
  readonly from?: string | undefined;
  readonly say: Say;
}

/**
 * Moves partitions to a shard. After an error, the same command continues the move. Throws a StartError or an error of
 * Postgres.
 */
export async function movePartitions(
  backends: Backends,
  partitions: readonly number[],
  target: number,
  { from, say }: MoveOptions,
): Promise<void> {
  const { pool, time, random } = backends;
  const [id, to] = [random.uuid(), shardOf(backends, target)];
  const unfinished = await claim(backends, id, say, (move) => {
    if (move.target !== target || rangesText(move.partitions) !== rangesText(partitions))
      throw new StartError(
        `a move of ${partitionsText(move.partitions)} to ${shardName(move.target)} is unfinished: finish it with ${again(move)}, or cancel it with "petrel shards undo"`,
      );
  });
  const move = unfinished ?? (await begin(backends, partitions, to, id, from));
  if (move === null) {
    say(`there        ${partitionsText(partitions)} in ${shardName(target)}`);
    return;
  }
  const runner = runnerOf(backends, move, id, say, from);
  await renewing(backends, id, async () => {
    await claimShards(runner);
    let paused = time.monotonic();
    for (const step of moves.moveSteps.slice(moves.moveSteps.indexOf(move.step))) {
      await moves.advanceMove(pool, id, step);
      if (step === 'pause') paused = time.monotonic();
      await work[step](runner);
      if (step === 'switch')
        say(
          `moved        ${partitionsText(partitions)} to ${shardName(target)}; writes to Postgres paused for ${seconds(time.monotonic() - paused)}`,
        );
    }
    await moves.endMove(pool, id);
  });
}

/**
 * Cancels a move that has not reached the step `switch`. The partitions stay at the source. Throws a StartError or an
 * error of Postgres.
 */
export async function undoMove(backends: Backends, say: Say): Promise<void> {
  const { pool, random } = backends;
  const id = random.uuid();
  const move = await claim(backends, id, say, (move) => {
    if (move.step === 'switch' || move.step === 'clean')
      throw new StartError(
        `${shardName(move.target)} already has these partitions: finish the move with ${again(move)}, then move them back`,
      );
  });
  if (move === null) throw new StartError('no partition is being moved');
  const runner = runnerOf(backends, move, id, say);
  await renewing(backends, id, async () => {
    await claimShards(runner);
    await moves.advanceMove(pool, id, move.step);
    await resume(runner);
    await copy.endCopy(runner.source, runner.target, runner.share);
    await copy.markAway(runner.target, runner.share);
    await copy.deleteRows(runner.target, runner.share);
    await moves.endMove(pool, id);
  });
  say(`stayed       ${partitionsText(move.partitions)} in ${shardName(move.source)}`);
}

const gibibytes = (bytes: number): string =>
  bytes < 1024 ** 3 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;

/**
 * Lists each database's partitions, and the unfinished move. With `rows`, also counts the messages of each partition.
 * The count reads every message.
 */
export async function listShards(backends: Backends, rows: boolean, say: Say): Promise<void> {
  const { pool, shards, keys } = backends;
  const [map, nodes, move] = await Promise.all([loadMap(pool), moves.nodeEpochs(pool), moves.loadMove(pool)]);
  const name = await nodeNames(backends);
  const live = new Set((await readNodes(backends)).map(({ id }) => id));
  const late = nodes.filter(({ node, epoch }) => epoch !== map.epoch && live.has(node));
  say(`epoch        ${map.epoch}${late.length === 0 ? ', used by all processes' : ''}`);
  for (const { node, epoch } of late) say(`             ${name(node)} still uses ${epoch}`);
  const places = new Map(map.rows.map((row) => [row.partition, row]));
  const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
  for (const shard of shards.all) {
    const own = all.filter((partition) => (places.get(partition)?.shard ?? 0) === shard.id);
    const { bytes, messages } = await copy.sizeOf(shard, Object.keys(shardedTables));
    say(
      `shard ${shard.id}      ${own.length} partitions, ${gibibytes(bytes)}, about ${messages} messages${own.length > 0 ? `: ${rangesText(own)}` : ''}`,
    );
    const left = new Set((await copy.leftFrom(shard, own)).map(({ partition }) => partition));
    if (left.size > 0 && move === null)
      say(
        `             its own record says that ${rangesText([...left].sort((a, b) => a - b))} have moved away`,
      );
    if (!rows) continue;
    for (const { partition, count } of await copy.countMessages(shard, keys.partitions.count))
      say(
        `             ${partition}: ${count} messages${own.includes(partition) ? '' : ', left over from a move'}`,
      );
  }
  const paused = map.rows.filter((row) => row.paused).map(({ partition }) => partition);
  if (paused.length > 0)
    say(`paused       ${rangesText(paused)}: not written to Postgres until the move continues`);
  if (move === null) return;
  say(
    `moving       ${partitionsText(move.partitions)} from shard ${move.source} to shard ${move.target} since ${move.since.toISOString()}, step ${move.step}`,
  );
  say(
    `             if no process continues the move: finish it with ${again(move)}${move.step === 'switch' || move.step === 'clean' ? '' : ', or cancel it with "petrel shards undo"'}`,
  );
}
