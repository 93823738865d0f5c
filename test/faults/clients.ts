/**
 * Concurrent clients that change the same objects through several fronts. Each call is recorded, and the history of
 * each object is checked against a sequential model.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { History, type Operation } from '../support/histories/history.js';
import { checkLinearizable, type Verdict } from '../support/histories/linearizable.js';
import {
  type EditInput,
  type EditOutput,
  edits,
  type OwnerInput,
  ownership,
  type PinCall,
  type PinOutput,
  pins,
  type ReactionInput,
  type ReactionOutput,
  reactionSteps,
  reactions,
  replacementSteps,
  type TokenInput,
  type TokenOutput,
  tokens,
} from '../support/histories/models.js';
import { arrivalsOf, checkUpdates, type Poll } from '../support/histories/updates.js';
import { type Answer, itemsOf, resultOf, type Service, type TestBot } from '../support/service.js';
import { numbersFrom } from '../support/workload.js';
import { eventually } from './world.js';

/** The time between two calls by a client. All clients call at the same moments, so that calls overlap. */
const tick_ms = 60;
/** How long a client pauses after a call without an answer. The pause keeps the number of unknown outcomes low. */
const rest_ms = 200;
/**
 * The tolerance when the interval between two edits is checked. The clock of Redis runs at a slightly different rate
 * than the clock of the test, and counts whole milliseconds.
 */
const clock_tolerance_ms = 10;
/** The maximum wait for enough answered calls, and for the answer of the last call. */
const answered_ms_max = 60_000;

/** Makes one recorded call of one client. Returns false if the outcome is unknown. */
type Client = () => Promise<boolean>;

/** An object, and the clients that change it concurrently. */
interface Subject {
  readonly key: string;
  readonly clients: readonly Client[];
  /** The last calls, which read the final state. Each of them must get an answer. */
  readonly finish: readonly Client[];
  check(history: History): Verdict;
}

export interface Findings {
  readonly verdicts: readonly Verdict[];
  /** Returns the violations in the updates of a bot. */
  readonly updates: readonly string[];
  readonly arrivals: number;
}

/**
 * Waits for the answer of a call. Returns null if the outcome is unknown, and undefined if the call did not reach a
 * front.
 */
async function outcomeOf<O>(
  call: Promise<Answer>,
  known: (answer: Answer) => O,
): Promise<O | null | undefined> {
  const answer = await call.catch((error) => {
    if (typeof error.code !== 'string') throw error;
    return error.code === 'ECONNREFUSED' ? undefined : null;
  });
  if (!answer) return answer;
  return answer.status === 503 ? null : known(answer);
}

function unexpected({ status, body }: Answer): never {
  throw new Error(`answered ${status} ${JSON.stringify(body)}`);
}

const resultIn = (answer: Answer) => (answer.status === 200 ? answer.body.result : unexpected(answer));
const refusalIn = ({ body }: Answer): string => body?.description ?? '';

/** Records calls on one object. */
class Recorder<I, O> {
  readonly key: string;
  readonly next: () => number;
  readonly #history: History;

  constructor(history: History, key: string, next: () => number) {
    this.key = key;
    this.next = next;
    this.#history = history;
  }

  pick = <T>(from: readonly T[]): T => from[Math.floor(this.next() * from.length)] as T;

  async call(
    client: string,
    input: I,
    call: () => Promise<Answer>,
    known: (answer: Answer) => O,
    reads = false,
  ): Promise<boolean> {
    const run = () => outcomeOf(call(), known);
    return (await this.#history.record({ client, key: this.key, input, reads }, run)) != null;
  }
}

const operationsOf = <I, O>(history: History, key: string) =>
  history.operations.filter((each) => each.key === key) as Operation<I, O>[];

const only = ([verdict]: Verdict[]): Verdict => {
  if (!verdict) throw new Error('no operation was recorded');
  return verdict;
};

/** Creates the clients of all fronts. `make` creates the clients of one front. */
const throughFronts = (service: Service, make: (front: number) => Client[]): Client[] =>
  service.fronts.flatMap((_, front) => make(front));

/** A person and a bot pin and unpin messages in a group, or in their direct chat. */
async function pinsOf(
  service: Service,
  history: History,
  next: () => number,
  kind: 'group' | 'direct',
): Promise<Subject> {
  const owner = await service.newUser('pins');
  const bot = await service.newBot(owner, 'pins');
  await service.openChat(owner, bot);
  const chat = kind === 'group' ? await service.newGroup(owner, 'pins') : bot.id;
  if (kind === 'group') {
    const member = { status: 'administrator', rights: { can_pin_messages: true } };
    await resultOf(service.app(owner, 'PUT', `/api/chats/${chat}/members/${bot.id}`, member));
  }
  const messages: number[] = [];
  for (const text of ['a', 'b', 'c'])
    messages.push(
      (await resultOf(service.app(owner, 'POST', `/api/chats/${chat}/messages`, { text }))).message_id,
    );
  const recorder = new Recorder<PinCall, PinOutput>(history, `pin of a ${kind} chat`, next);
  const changed = (answer: Answer): PinOutput => {
    if (answer.status === 200) return 'done';
    return refusalIn(answer) === 'Bad Request: message to unpin not found' ? 'not_found' : unexpected(answer);
  };
  const shown = (answer: Answer): PinOutput => resultIn(answer).pinned_message?.message_id ?? 0;
  const draw = (): PinCall => {
    const luck = next();
    if (luck < 0.35) return { what: 'pin', message: recorder.pick(messages) };
    if (luck < 0.5) return { what: 'unpin', message: recorder.pick(messages) };
    if (luck < 0.6) return { what: 'unpin' };
    return { what: luck < 0.65 ? 'unpinAll' : 'read' };
  };
  const byBot = (front: number, input: PinCall) => {
    const method = {
      pin: 'pinChatMessage',
      unpin: 'unpinChatMessage',
      unpinAll: 'unpinAllChatMessages',
      read: 'getChat',
    };
    const id = 'message' in input && input.message !== undefined ? { message_id: input.message } : {};
    return service.bot(
      bot,
      method[input.what],
      { chat_id: kind === 'group' ? chat : owner.id, ...id },
      front,
    );
  };
  const byPerson = (front: number, input: PinCall) => {
    const path = `/api/chats/${chat}`;
    if (input.what === 'pin')
      return service.app(owner, 'POST', `${path}/pin`, { message_id: input.message }, front);
    if (input.what === 'read') return service.app(owner, 'GET', path, undefined, front);
    const query = input.what === 'unpin' && input.message !== undefined ? `?message_id=${input.message}` : '';
    return service.app(owner, 'DELETE', `${path}/pin${query}`, undefined, front);
  };
  const act = (front: number, who: 'bot' | 'person', given?: PinCall) => () => {
    const drawn = given ?? draw();
    // A person unpins only single messages, because only bots have a call that unpins all messages.
    const input: PinCall = drawn.what === 'unpinAll' && who === 'person' ? { what: 'unpin' } : drawn;
    const call = () => (who === 'bot' ? byBot : byPerson)(front, input);
    const reads = input.what === 'read';
    return recorder.call(`${who} at front ${front}`, input, call, reads ? shown : changed, reads);
  };
  return {
    key: recorder.key,
    clients: throughFronts(service, (front) => [act(front, 'bot'), act(front, 'person')]),
    finish: throughFronts(service, (front) => [
      act(front, 'bot', { what: 'read' }),
      act(front, 'person', { what: 'read' }),
    ]),
    check: (all) => only(checkLinearizable(pins, operationsOf<PinCall, PinOutput>(all, recorder.key))),
  };
}

/** Two people react to a post. Each person calls all fronts. */
async function reactionsOf(service: Service, history: History, next: () => number): Promise<Subject> {
  const owner = await service.newUser('reacts');
  const people = [owner, await service.newUser('reacts')];
  const channel = (
    await resultOf(service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'posts' }))
  ).id;
  await resultOf(service.app(owner, 'POST', `/api/chats/${channel}/messages`, { text: 'post' }));
  const [post] = await itemsOf(service.app(owner, 'GET', `/api/chats/${channel}/posts`));
  const path = `/api/posts/${post.id}`;
  const emojis = ['👍', '🔥'];
  const recorder = new Recorder<ReactionInput, ReactionOutput>(history, 'reactions to a post', next);
  const draw = (person: string): ReactionInput => {
    const luck = next();
    if (luck < 0.35) return { what: 'set', person, emoji: recorder.pick(emojis) };
    if (luck < 0.6) return { what: 'remove', person, emoji: recorder.pick(emojis) };
    return luck < 0.7 ? { what: 'clear', person } : { what: 'read', person };
  };
  const entries = (list: readonly { emoji: string; count: number; user_ids: string[] }[]) =>
    Object.fromEntries(list.map(({ emoji, count }) => [emoji, count]));
  const ids = await Promise.all(
    people.map(
      async (person) => (await resultOf(service.app(person, 'GET', '/api/me'))).external_id as string,
    ),
  );
  const act = (front: number, index: number, given?: ReactionInput['what']) => () => {
    const [user, id] = [people[index] as (typeof people)[0], ids[index] as string];
    const person = `person ${index}`;
    const input: ReactionInput = given === 'read' ? { what: 'read', person } : draw(person);
    const emoji = 'emoji' in input ? input.emoji : '';
    const call = () => {
      if (input.what === 'read') return service.app(user, 'GET', path, undefined, front);
      if (input.what === 'set') return service.app(user, 'POST', `${path}/reactions`, { emoji }, front);
      const query = input.what === 'remove' ? `?emoji=${encodeURIComponent(emoji)}` : '';
      return service.app(user, 'DELETE', `${path}/reactions${query}`, undefined, front);
    };
    const known = (answer: Answer): ReactionOutput => {
      if (answer.status !== 200) return unexpected(answer);
      const list = input.what === 'read' ? answer.body.result.reactions : answer.body.reactions;
      const mine = list.flatMap((each: { emoji: string; user_ids: string[] }) =>
        each.user_ids.includes(id) ? [each.emoji] : [],
      );
      return { own: answer.body.my_reactions ?? mine, counts: entries(list) };
    };
    return recorder.call(`${person} at front ${front}`, input, call, known, input.what === 'read');
  };
  return {
    key: recorder.key,
    clients: throughFronts(service, (front) => [act(front, 0), act(front, 1)]),
    finish: throughFronts(service, (front) => [act(front, 0, 'read'), act(front, 1, 'read')]),
    check: (all) =>
      only(
        checkLinearizable(
          reactions,
          operationsOf<ReactionInput, ReactionOutput>(all, recorder.key).flatMap(reactionSteps),
        ),
      ),
  };
}

/** An owner replaces the token of a bot, while clients use the bot's present and former tokens. */
async function tokensOf(service: Service, history: History, next: () => number): Promise<Subject> {
  const owner = await service.newUser('tokens');
  const bot = await service.newBot(owner, 'tokens');
  const issued = [{ name: 't0', token: bot.token }];
  let replaced = 0;
  const recorder = new Recorder<{ what: string; token: string }, TokenOutput>(
    history,
    'tokens of a bot',
    next,
  );
  const replace = (front: number) => async () => {
    const name = `t${++replaced}`;
    const path = `/api/me/bots/${bot.id}/regenerate_token`;
    const call = () => service.app(owner, 'POST', path, undefined, front);
    return recorder.call(`owner at front ${front}`, { what: 'replace', token: name }, call, (answer) => {
      issued.push({ name, token: resultIn(answer).token });
      return true;
    });
  };
  const use = (front: number, place: () => number) => () => {
    const { name, token } = issued.at(place()) ?? (issued[0] as (typeof issued)[0]);
    const call = () => service.bot(token, 'getMe', {}, front);
    const known = (answer: Answer) =>
      answer.status === 200 || (answer.status === 401 ? false : unexpected(answer));
    return recorder.call(`bot at front ${front}`, { what: 'use', token: name }, call, known, true);
  };
  const recent = () => -1 - Math.floor(3 * next() ** 2);
  let turn = 0;
  const owns: Client = () => {
    turn++;
    return turn % 8 === 0
      ? replace(turn % service.fronts.length)()
      : use(turn % service.fronts.length, recent)();
  };
  return {
    key: recorder.key,
    clients: [owns, ...throughFronts(service, (front) => [use(front, recent), use(front, recent)])],
    finish: [
      replace(0),
      ...throughFronts(service, (front) => [
        use(front, () => -1),
        use(front, () => -2),
        use(front, () => -3),
      ]),
    ],
    check(all) {
      const recorded = operationsOf<{ what: string; token: string }, TokenOutput>(all, recorder.key);
      const steps = recorded.flatMap((each): Operation<TokenInput, TokenOutput>[] =>
        each.input.what === 'replace'
          ? replacementSteps(each, each.input.token)
          : [{ ...each, input: { what: 'use', token: each.input.token } }],
      );
      return only(checkLinearizable(tokens('t0'), steps));
    },
  };
}

/** Three people transfer a bot to each other. */
async function ownershipOf(service: Service, history: History, next: () => number): Promise<Subject> {
  const people = await Promise.all([0, 1, 2].map(() => service.newUser('owns')));
  const bot = await service.newBot(people[0] as (typeof people)[0], 'owned');
  const recorder = new Recorder<OwnerInput, boolean>(history, 'owner of a bot', next);
  const known = (answer: Answer) =>
    answer.status === 200 || (answer.status === 403 ? false : unexpected(answer));
  const act = (front: number, index: number, reads: boolean) => () => {
    const user = people[index] as (typeof people)[0];
    const client = `${user.username} at front ${front}`;
    const path = `/api/me/bots/${bot.id}`;
    if (reads || next() < 0.6) {
      const input = { what: 'owns', person: user.username } as const;
      return recorder.call(
        client,
        input,
        () => service.app(user, 'GET', path, undefined, front),
        known,
        true,
      );
    }
    const { username } = recorder.pick(people.filter((each) => each !== user));
    const input = { what: 'transfer', from: user.username, to: username } as const;
    const body = { username, confirm: true };
    return recorder.call(
      client,
      input,
      () => service.app(user, 'POST', `${path}/transfer`, body, front),
      known,
    );
  };
  const all = [0, 1, 2];
  return {
    key: recorder.key,
    clients: throughFronts(service, (front) => all.map((index) => act(front, index, false))),
    finish: throughFronts(service, (front) => all.map((index) => act(front, index, true))),
    check(history) {
      const model = ownership((people[0] as (typeof people)[0]).username);
      return only(checkLinearizable(model, operationsOf<OwnerInput, boolean>(history, recorder.key)));
    },
  };
}

/** A bot edits one message through all fronts, more often than allowed. */
async function editsOf(service: Service, history: History, next: () => number): Promise<Subject> {
  const owner = await service.newUser('edits');
  const bot = await service.newBot(owner, 'edits');
  await service.openChat(owner, bot);
  const text = 'text 0';
  const { message_id } = await resultOf(service.bot(bot, 'sendMessage', { chat_id: owner.id, text }));
  const recorder = new Recorder<EditInput, EditOutput>(history, 'edits of a message', next);
  let edited = 0;
  const edit = (front: number) => () => {
    const input = { what: 'edit', text: `text ${++edited}` } as const;
    const params = { chat_id: owner.id, message_id, text: input.text };
    const known = (answer: Answer): EditOutput => {
      if (answer.status === 200) return 'done';
      return answer.status === 429 ? 'too_often' : unexpected(answer);
    };
    return recorder.call(
      `bot at front ${front}`,
      input,
      () => service.bot(bot, 'editMessageText', params, front),
      known,
    );
  };
  const read = (front: number) => () => {
    const path = `/api/chats/${bot.id}/messages?limit=1&before=${message_id + 1}`;
    const known = (answer: Answer): EditOutput => ({ text: resultIn(answer).items[0].text });
    const call = () => service.app(owner, 'GET', path, undefined, front);
    return recorder.call(`person at front ${front}`, { what: 'read' }, call, known, true);
  };
  return {
    key: recorder.key,
    clients: throughFronts(service, (front) => [edit(front), edit(front), read(front)]),
    finish: throughFronts(service, (front) => [read(front)]),
    check(all) {
      const model = edits(text, limits.edit_interval_ms_min - clock_tolerance_ms);
      return only(checkLinearizable(model, operationsOf<EditInput, EditOutput>(all, recorder.key)));
    },
  };
}

/** Two people write to a bot, which polls through all fronts in turn. */
async function updatesOf(service: Service, next: () => number) {
  const people = await Promise.all([0, 1].map(() => service.newUser('writes')));
  const bot: TestBot = await service.newBot(people[0] as (typeof people)[0], 'polls');
  await Promise.all(people.map((user) => service.openChat(user, bot)));
  const attempted = new Set<string>();
  const acknowledged: string[] = [];
  const polls: Poll[] = [];
  const received = new Set<string>();
  let offset = 0;
  let sent = 0;
  const send = (index: number): Client => {
    let tries = 0;
    return async () => {
      const text = `person ${index} message ${++sent}`;
      attempted.add(text);
      const front = ++tries % service.fronts.length;
      const user = people[index] as (typeof people)[0];
      const call = service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text }, front);
      const done = await outcomeOf(call, resultIn);
      if (done) acknowledged.push(text);
      return done != null;
    };
  };
  const poll = async (timeout: number): Promise<boolean> => {
    const call = service.bot(bot, 'getUpdates', { offset, timeout }, polls.length % service.fronts.length);
    // A poll whose connection was cut may still be running. A newer poll ends the earlier poll with 409.
    const list = await outcomeOf(call, (answer) => (answer.status === 409 ? null : resultIn(answer)));
    if (!list) return false;
    const updates = list.map(({ update_id, message }: Answer['body']) => ({
      id: update_id,
      chat: `${message?.chat.id}`,
      message: message?.message_id,
      text: message?.text,
    }));
    polls.push({ offset, updates });
    for (const { text } of updates) received.add(text);
    // Leaves some updates unconfirmed, so that the next poll gets these updates a second time.
    if (updates.length > 0 && next() < 0.8) offset = updates.at(-1).id + 1;
    return true;
  };
  // Confirms the updates about the two people who started the bot.
  await eventually('the bot has no updates', async () => {
    const list = await resultOf(service.bot(bot, 'getUpdates', { offset }));
    if (list.length > 0) offset = list.at(-1).update_id + 1;
    return list.length === 0 && offset > 0;
  });
  return {
    clients: [send(0), send(1)],
    poll,
    async finish(msMax: number): Promise<void> {
      const arrived = async () => {
        if (!(await poll(0))) await sleep(rest_ms);
        return acknowledged.every((text) => received.has(text));
      };
      // Does not fail at the time limit, because `check` reports the missing updates.
      await eventually('all updates arrived', arrived, msMax).catch(() => undefined);
    },
    check: (skips: number) => {
      const arrivals = arrivalsOf(polls);
      const rules = { ordered: 'bot', skips, skipLeast: limits.incarnation_sequence_skip } as const;
      return {
        arrivals: arrivals.length,
        updates: checkUpdates(arrivals, { ...rules, acknowledged, attempted }),
      };
    },
  };
}

/** Makes calls at regular intervals until stopped. */
async function keepCalling(client: Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(tick_ms - (performance.now() % tick_ms));
    if (!(await client())) await sleep(rest_ms);
  }
}

export interface RoundOptions {
  readonly seed: number;
  /** The number of calls on each object that must be answered before the round ends. */
  readonly answered: number;
  /** Causes the faults during the round. The round lasts at least until the returned promise resolves. */
  readonly disturb?: () => Promise<void>;
  /** How long in ms the last updates may take to arrive. Default 20,000. */
  readonly arrivalMsMax?: number;
  /** How many times Redis is restarted in the round. */
  readonly restarts?: number;
}

/** Creates new objects, lets clients change them while `disturb` causes faults, and checks the recorded calls. */
export async function playRound(service: Service, options: RoundOptions): Promise<Findings> {
  const history = new History();
  const next = numbersFrom(options.seed);
  const subjects = await Promise.all([
    pinsOf(service, history, next, 'group'),
    pinsOf(service, history, next, 'direct'),
    reactionsOf(service, history, next),
    tokensOf(service, history, next),
    ownershipOf(service, history, next),
    editsOf(service, history, next),
  ]);
  const updates = await updatesOf(service, next);
  const ended = new AbortController();
  const polling = (async () => {
    while (!ended.signal.aborted) if (!(await updates.poll(1))) await sleep(rest_ms);
  })();
  const clients = [...subjects.flatMap((each) => each.clients), ...updates.clients];
  const calling = Promise.all(clients.map((client) => keepCalling(client, ended.signal)));
  const answeredOf = (key: string) =>
    history.operations.filter((each) => each.key === key && each.output !== null).length;
  const enough = () =>
    ended.signal.aborted || subjects.every(({ key }) => answeredOf(key) >= options.answered);
  const disturbed = (async () => {
    await options.disturb?.();
    await eventually('enough calls were answered', enough, answered_ms_max);
  })();
  // An unexpected answer ends the round.
  const work = [disturbed, calling, polling];
  await Promise.race(work)
    .catch(() => undefined)
    .finally(() => ended.abort());
  await Promise.allSettled(work);
  await Promise.all(work);
  for (const { finish } of subjects)
    for (const client of finish) await eventually('a last call is answered', client, answered_ms_max);
  await updates.finish(options.arrivalMsMax ?? 20_000);
  return { verdicts: subjects.map((each) => each.check(history)), ...updates.check(options.restarts ?? 0) };
}
