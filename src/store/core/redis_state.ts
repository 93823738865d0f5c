/**
 * What Redis holds, record by record and field by field, and where it comes from when Redis lost it. A test holds this table over all
 * scripts: a key or a field that is missing here fails it. `petrel redis rebuild` prints it.
 */

/** Where a field comes from after a loss. */
export type Origin =
  /** From these rows of Postgres, when it is asked for. */
  | { readonly rows: string }
  /** Nodes tell it again by themselves, or it begins anew; nobody misses it. */
  | { readonly again: string }
  /** It is gone: what that means. */
  | { readonly lost: string };

export interface RedisRecord {
  /** The part of the key behind its tag. */
  readonly kind: string;
  readonly what: string;
  /** By field; a name that ends in * stands for all that begin so, and the name '' for a record without fields. */
  readonly fields: Readonly<Record<string, Origin>>;
}

const rows = (table: string): Origin => ({ rows: table });
const again = (how: string): Origin => ({ again: how });
const lost = (what: string): Origin => ({ lost: what });

/** The same origin for several fields. */
const all = (names: string, origin: Origin): Record<string, Origin> =>
  Object.fromEntries(names.split(' ').map((name) => [name, origin]));

/** A record without fields. */
const single = (kind: string, what: string, origin: Origin): RedisRecord => ({
  kind,
  what,
  fields: { '': origin },
});

export const redisRecords: readonly RedisRecord[] = [
  {
    kind: 'meta',
    what: 'a partition',
    fields: {
      ...all('run hw hwb', again('when the partition is opened')),
      ...all('jw jt', again('of an empty journal')),
      ow: again('of an empty outbox'),
      fl: again('by the next flush'),
      ...all('ver post_inc', rows('partitions.incarnation')),
      post: rows('post_sequences'),
      of: again('when the partition is opened'),
      seal: lost('proofs that an orderly stop lost nothing'),
    },
  },
  single(
    'journal',
    'changes on their way to Postgres',
    lost('acknowledged changes that were not written behind'),
  ),
  single('outbox', 'updates on their way to bots', lost('updates that waited for bots')),
  single('bot', 'a bot', rows('bots')),
  single('user', 'a person', rows('users, user_tokens')),
  single('memberships', 'the chats of a person', rows('direct_chats, chat_members')),
  single('commands', 'the commands of a bot', rows('bots.commands')),
  single('descriptions', 'what a bot says of itself', rows('bots')),
  single('member', 'a member of a group or channel', rows('chat_members')),
  single('administrators', 'the administrators of a chat', rows('chat_members')),
  single('webhook', 'the webhook of a bot', rows('webhooks')),
  single('name', 'what a username names', rows('names, chats')),
  single('identity', 'whom a subject of an identity provider means', rows('user_identities')),
  single('msg', 'a message', rows('messages')),
  {
    kind: 'chat',
    what: 'a chat',
    fields: {
      ...all('s i v c', rows('chat_sequences')),
      pin: rows('chat_pins'),
      ...all('p pv t b pi', rows('chats, direct_chats, users, bots, chat_members')),
      w: rows('bots.write_policy, bot_writers'),
    },
  },
  {
    kind: 'post',
    what: 'a post',
    fields: {
      ...all('c m v x', rows('posts')),
      ...all('u n:* f:*', rows('post_tallies')),
      ...all('l:* o:*', rows('post_reactions')),
      ...all('g gp gt', again('those who acted lately are noted from now on')),
    },
  },
  { kind: 'acted', what: 'who acted on a post lately', fields: { '*': rows('post_reactions') } },
  {
    kind: 'queue_state',
    what: 'the queue of a bot',
    fields: {
      ...all('seq inc', lost('update ids begin anew, at a random point')),
      bytes: again('of an empty queue'),
      ...all('mask mv', rows('bot_update_masks')),
      ...all('hook hook_version hook_set since', rows('webhooks')),
      dropped: again('nothing is there to be dropped'),
      poll: again('by the next poll'),
      dead: lost('how many updates were given up'),
      ...all('cur leased fence rung hold probes', again('by the next worker')),
      ...all('gone strayed', again('when it happens again')),
      ...all('err err_at', lost('the last error of a webhook')),
      ...all('wi wv wp', rows('bots.write_policy')),
    },
  },
  single('queue', 'updates of a bot', lost('updates that waited for bots')),
  { kind: 'queue_marks', what: 'what entered a queue', fields: { '*': again('outboxes are empty too') } },
  single('parked', 'updates behind one that failed', lost('updates that waited for bots')),
  single('retries', 'when chats of a webhook are tried again', lost('retries of webhooks')),
  { kind: 'attempts', what: 'how often a chat was tried', fields: { '*': lost('retries of webhooks') } },
  single('webhooks_due', 'webhooks that are due', again('by the next update')),
  single('counts_due', 'posts whose counts are to be told', again('by the next reaction')),
  single('callback_query', 'a button that was pressed', lost('open button presses')),
  single('changes', 'what changed in a chat lately', lost('how far event streams had come: they read anew')),
  single('windows', 'who has a window open', again('by the windows')),
  single('req', 'the answer of a request', lost('a call that is sent again within a minute may act twice')),
  {
    kind: 'idempotency',
    what: 'a call under an idempotency key',
    fields: { '*': lost('answers under idempotency keys') },
  },
  single('idempotency_bytes', 'bytes that idempotency keys keep', lost('answers under idempotency keys')),
  single('idempotency_live', 'live idempotency keys', lost('answers under idempotency keys')),
  single('rate', 'a token bucket', again('full')),
  single('guesses', 'what an address guessed lately', again('from nothing')),
  single('flush_lease', 'who flushes a partition', again('by the flushers')),
  { kind: 'flushers', what: 'flushers that live', fields: { '*': again('by the flushers') } },
  single('forgetting', 'who takes out what is old', again('when it is needed')),
  {
    kind: 'auth_nodes',
    what: 'leases on tokens',
    fields: { '*': again('by the nodes, which forget what they remembered') },
  },
  single('auth_revoked', 'who was revoked lately', again('nodes forget all that they remembered')),
  { kind: 'rings', what: 'keys that nodes hold', fields: { '*': again('by the nodes') } },
  { kind: 'nodes', what: 'what nodes tell of themselves', fields: { '*': again('by the nodes') } },
  {
    kind: 'installation',
    what: 'what nodes agree on',
    fields: all('PARTITIONS ID GENERATION', again('by the first node')),
  },
  {
    kind: 'postgres',
    what: 'how far Postgres has committed',
    fields: {
      ...all('mark:* id version', again('by the next changes')),
      ...all('server running incarnation', again('by the next connection')),
      ...all('gone:*', lost('which former servers of Postgres are refused')),
    },
  },
  single('revoked', 'what was revoked lately', lost('whether a Postgres that goes back revives a token')),
];

/** The origin of a field, or undefined where the table lacks it. Tickets of fills belong to no record. */
export function originOf(kind: string, field: string): Origin | undefined {
  const fields = redisRecords.find((each) => each.kind === kind)?.fields;
  if (fields === undefined) return undefined;
  const named = Object.entries(fields).find(
    ([name]) => name === field || (name.endsWith('*') && field.startsWith(name.slice(0, -1))),
  );
  return named?.[1];
}

const told = (origin: Origin): string =>
  'rows' in origin
    ? `read back from ${origin.rows}`
    : 'again' in origin
      ? `again: ${origin.again}`
      : `LOST: ${origin.lost}`;

/** The table as lines: fields of one record that share an origin share a line. */
export function describeRecords(): string[] {
  return redisRecords.flatMap(({ kind, what, fields }) => {
    const byOrigin = new Map<string, string[]>();
    for (const [name, origin] of Object.entries(fields)) {
      const text = told(origin);
      byOrigin.set(text, [...(byOrigin.get(text) ?? []), name]);
    }
    return [...byOrigin].map(([text, names]) => {
      const named = names[0] === '' ? '' : ` (${names.join(' ')})`;
      return `  ${kind}${named}, ${what}: ${text}`;
    });
  });
}
