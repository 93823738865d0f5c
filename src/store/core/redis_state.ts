/**
 * Lists all data in Redis by record and field, and says how each field is restored if Redis loses it. A test compares
 * this list with the scripts, and fails if the list lacks a key or field. `petrel redis rebuild` prints the list.
 */

export type Origin =
  /** The Postgres tables from which the field is loaded on demand. */
  | { readonly rows: string }
  /** The nodes write the field again, or nothing is lost if the field starts empty. */
  | { readonly again: string }
  /** The field cannot be restored. The text says which data is lost. */
  | { readonly lost: string };

export interface RedisRecord {
  /** The kind of a record: the part of its key after the hash tag. */
  readonly kind: string;
  readonly what: string;
  /**
   * The fields by name. A name that ends in * stands for all names with this prefix. '' stands for a record without
   * fields.
   */
  readonly fields: Readonly<Record<string, Origin>>;
}

const rows = (table: string): Origin => ({ rows: table });
const again = (how: string): Origin => ({ again: how });
const lost = (what: string): Origin => ({ lost: what });

const all = (names: string, origin: Origin): Record<string, Origin> =>
  Object.fromEntries(names.split(' ').map((name) => [name, origin]));

const single = (kind: string, what: string, origin: Origin, field = ''): RedisRecord => ({
  kind,
  what,
  fields: { [field]: origin },
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
      seal: lost('proof that an orderly shutdown lost nothing'),
    },
  },
  single('journal', 'changes not yet in Postgres', lost('acknowledged changes that are not in Postgres yet')),
  single('outbox', 'updates to be forwarded to bots', lost('pending updates of bots')),
  single('bot', 'a bot', rows('bots')),
  single('user', 'a person', rows('users, user_tokens')),
  single('memberships', 'the chats of a person', rows('direct_chats, chat_members')),
  single('commands', 'the commands of a bot', rows('bots.commands')),
  single('descriptions', 'descriptions of a bot', rows('bots')),
  single('member', 'a member of a group or channel', rows('chat_members')),
  single('administrators', 'the administrators of a chat', rows('chat_members')),
  single('details', 'description and photo of a chat', rows('chats')),
  single('webhook', 'the webhook of a bot', rows('webhooks')),
  single('name', 'the chat of a username', rows('names, chats')),
  single('identity', 'the person of an identity provider subject', rows('user_identities')),
  single('msg', 'a message', rows('messages')),
  {
    kind: 'chat',
    what: 'a chat',
    fields: {
      ...all('s i v c', rows('chat_sequences')),
      ...all('pin kb', rows('chat_pins')),
      ...all('p pv t b d pi', rows('chats, direct_chats, users, bots, chat_members')),
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
      ...all('g gp gt', again('recent reactors are recorded from now on')),
    },
  },
  single('acted', 'recent reactors of a post', rows('post_reactions'), '*'),
  {
    kind: 'poll',
    what: 'a poll',
    fields: {
      ...all('c b d k e q o v x r', rows('polls')),
      ...all('u n:* z', rows('poll_results')),
      ...all('g gp gt', again('recent voters are recorded from now on')),
    },
  },
  single('voted', 'recent voters of a poll', rows('poll_votes'), '*'),
  {
    kind: 'queue_state',
    what: 'the queue of a bot',
    fields: {
      ...all('seq inc', lost('update ids restart at a random value')),
      bytes: again('the queue starts empty'),
      ...all('mask mv own', rows('bot_update_masks')),
      ...all('hook hook_version hook_set since routes_version', rows('webhooks')),
      ...all('dropped dropped_to', again('the queue starts empty')),
      poll: again('by the next poll'),
      dead: lost('the number of dead letters'),
      ...all('cur leased fence rung hold probes', again('by the next worker')),
      ...all('gone strayed', again('when it happens again')),
      ...all('err err_at', lost('the last error of a webhook')),
      ...all('wi wv wp', rows('bots.write_policy')),
      ...all('replay to at fed', again('the replay starts again')),
    },
  },
  single('queue', 'updates of a bot', lost('pending updates of bots')),
  single('routes', 'the webhook routes of a bot', rows('webhooks.routes_box'), '*'),
  single('queue_marks', 'the last updates forwarded to a queue', again('outboxes are empty too'), '*'),
  single('parked', 'updates behind a failed one', lost('pending updates of bots')),
  single('retries', 'retry times of chats', lost('retries of webhooks')),
  single('attempts', 'delivery attempts of a chat', lost('retries of webhooks'), '*'),
  single('consumers', 'consumers of a shared queue', again('by the next poll')),
  single('consumption', 'what consumers got', again('their unconfirmed updates come again'), '*'),
  single('assigned', 'next updates of consumers by chat', again('by the next poll')),
  single('unsent', 'updates that consumers will get', again('by the next poll')),
  single('holders', 'consumers by chat', again('by the next poll'), '*'),
  single('webhooks_due', 'webhooks that are due', again('by the next update')),
  single('counts_due', 'posts whose reaction counts must be sent', again('by the next reaction')),
  single(
    'polls_due',
    'polls whose state goes to their bots',
    again('by the next vote, or when a poll is read'),
  ),
  single('callback_query', 'an open callback query', lost('open callback queries')),
  single('draft', 'the draft that a bot shows', again('by the next change of the draft'), '*'),
  single(
    'person_drafts',
    'the unsent texts of a person',
    lost('unsent texts that no browser has stored'),
    '*',
  ),
  single('inline_query', 'an open inline query', lost('open inline queries')),
  single('inline_answer', 'the answer to an inline query', lost('answers to inline queries'), '*'),
  single('inline_cache', 'the answer to a repeated inline query', again('by the next query')),
  single('inline_answers', 'the answers of a bot by age', again('answers are lost too')),
  single('inline_bytes', 'the size of the answers of a bot', again('answers are lost too')),
  single('granted_edits', 'edits granted by presses', again('by the next press')),
  single('pending_edits', 'edits that wait for their second', lost('edits that were not applied yet'), '*'),
  single('edits_due', 'when pending edits are applied', again('pending edits are lost too')),
  single(
    'changes',
    'recent changes of a chat',
    lost('positions of event streams: clients reload their chats'),
  ),
  single('windows', 'people with an open window', again('by their windows')),
  single(
    'req',
    'the answer of a request',
    lost('protection against repeats: a call repeated within a minute may run twice'),
  ),
  single('idempotency', 'a call under an idempotency key', lost('answers under idempotency keys'), '*'),
  single('idempotency_bytes', 'bytes stored for idempotency keys', lost('answers under idempotency keys')),
  single('idempotency_live', 'live idempotency keys', lost('answers under idempotency keys')),
  single('rate', 'a token bucket', again('starts full')),
  single('link_preview', 'the preview of a page', again('by the next look-up of the page')),
  single('guesses', 'recent token guesses of an address', again('starts at zero')),
  single('flush_lease', 'the flusher of a partition', again('by the flushers')),
  single('flushers', 'live flushers', again('by the flushers'), '*'),
  single('forgetting', 'the node that removes outdated entities', again('when it is needed')),
  single('auth_nodes', 'leases on tokens', again('by the nodes, which clear their token caches'), '*'),
  single('auth_revoked', 'recent revocations', again('nodes clear their token caches')),
  single('rings', 'keys that nodes have', again('by the nodes'), '*'),
  single('nodes', 'reports of nodes', again('by the nodes'), '*'),
  single('figures', 'figures of the last hour', again('they are recorded from now on'), '*'),
  {
    kind: 'installation',
    what: 'settings that all nodes share',
    fields: all('PARTITIONS ID GENERATION', again('by the first node')),
  },
  {
    kind: 'postgres',
    what: 'how far Postgres has committed',
    fields: {
      ...all('mark:* id version', again('by the next changes')),
      ...all('server running incarnation', again('by the next connection')),
      ...all('gone:*', lost('which replaced Postgres servers must be rejected')),
    },
  },
  single(
    'revoked',
    'recent revocations',
    lost('protection if Postgres loses commits: revoked tokens may become valid again'),
  ),
];

/** Returns how a field is restored, or undefined if no listed record has the field. */
export function originOf(kind: string, field: string): Origin | undefined {
  const fields = redisRecords.find((each) => each.kind === kind)?.fields;
  if (fields === undefined) return undefined;
  const named = Object.entries(fields).find(
    ([name]) => name === field || (name.endsWith('*') && field.startsWith(name.slice(0, -1))),
  );
  return named?.[1];
}

const describeOrigin = (origin: Origin): string =>
  'rows' in origin
    ? `read back from ${origin.rows}`
    : 'again' in origin
      ? `restored: ${origin.again}`
      : `LOST: ${origin.lost}`;

export function describeRecords(): string[] {
  return redisRecords.flatMap(({ kind, what, fields }) => {
    const byOrigin = new Map<string, string[]>();
    for (const [name, origin] of Object.entries(fields)) {
      const text = describeOrigin(origin);
      byOrigin.set(text, [...(byOrigin.get(text) ?? []), name]);
    }
    return [...byOrigin].map(([text, names]) => {
      const named = names[0] === '' ? '' : ` (${names.join(' ')})`;
      return `  ${kind}${named}, ${what}: ${text}`;
    });
  });
}
