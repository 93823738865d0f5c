/** Builds the complete store from its parts, for one Redis, one Postgres and one set of keys. */
import { noReplicas } from '../postgres/replicas.js';
import { appliedOnce, wasApplied } from '../postgres/sql.js';
import { systemRandom } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { Hints } from '../redis/hints.js';
import { isInChat } from '../rules/rights.js';
import { systemTime } from '../time.js';
import { createAdmins } from './access/admins.js';
import { createAudit } from './access/audit.js';
import { Auth } from './access/auth.js';
import { createFairUse, type Rates } from './access/fair_use.js';
import { Guesses, type Guessing } from './access/guesses.js';
import { createLeaks } from './access/leaks.js';
import { createLookUps } from './access/look_ups.js';
import { createUploads, type UploadBounds } from './access/uploads.js';
import { createWriteAccessCopies } from './access/write_access.js';
import { Accounts } from './accounts/accounts.js';
import { createErase } from './accounts/erasure.js';
import { createExports } from './accounts/exports.js';
import { createIdentities } from './accounts/identities.js';
import { createNotices } from './accounts/notices.js';
import { createOversight } from './accounts/oversight.js';
import { createProfiles } from './accounts/profiles.js';
import { Retention } from './accounts/retention.js';
import { createSessions } from './accounts/sessions.js';
import { createUsers } from './accounts/users.js';
import { Bots } from './bots/bots.js';
import { createManagement } from './bots/management.js';
import { createPictures } from './bots/pictures.js';
import { createRemovalFollowing } from './bots/removal.js';
import { createSigningSecrets } from './bots/signing_secrets.js';
import { createStickerSets } from './bots/sticker_sets.js';
import { createActionRates } from './chats/action_rates.js';
import { Activity } from './chats/activity.js';
import { Chats } from './chats/chats.js';
import { History } from './chats/history.js';
import { createMutes } from './chats/mutes.js';
import { createPeople } from './chats/people.js';
import { createPersonDrafts } from './chats/person_drafts.js';
import { createPlaces } from './chats/places.js';
import { createPresence } from './chats/presence.js';
import { createPush } from './chats/push.js';
import { createReadMarks } from './chats/read_marks.js';
import { Search } from './chats/search.js';
import { Streams } from './chats/streams.js';
import {
  type CallOrigin,
  createUniqueText,
  requestIdsOf,
  type StoreContext,
  shardsOnce,
} from './core/context.js';
import { ControlCopies } from './core/control.js';
import { type Changes, Durability, notingRunner } from './core/durability.js';
import { createIdempotency } from './core/idempotency.js';
import { createRecords } from './core/records.js';
import { createInlineIds } from './inline/inline_ids.js';
import { InlineQueries } from './inline/inline_queries.js';
import { InlineWaits } from './inline/inline_waits.js';
import { Rotation } from './maintenance/rotation.js';
import { Sweep } from './maintenance/sweep.js';
import { createCallbacks } from './messages/callbacks.js';
import { createLinkPreviews } from './messages/link_previews.js';
import { createMessageDrafts } from './messages/message_drafts.js';
import { Messages } from './messages/messages.js';
import { PendingEdits } from './messages/pending_edits.js';
import { createPins } from './messages/pins.js';
import { ReadBack } from './messages/read_back.js';
import { createRepeats } from './messages/repeats.js';
import { PostReadBack } from './posts/post_cold.js';
import { createPostCounts } from './posts/post_counts.js';
import { createPostIds } from './posts/post_ids.js';
import { createPostWatches } from './posts/post_watches.js';
import { Posts } from './posts/posts.js';
import { createScheduledPosts } from './posts/scheduled_posts.js';
import { Forwarder } from './updates/forwarder.js';
import { Polls } from './updates/polls.js';
import { createQueues } from './updates/queues.js';
import { createPollNumbers, Votes } from './votes/votes.js';
import { createAttempts } from './webhooks/attempts.js';
import { createDeliveries } from './webhooks/deliveries.js';
import { HistoryReplays } from './webhooks/history_replays.js';
import { createKeptUpdates } from './webhooks/kept_updates.js';
import { Replays } from './webhooks/replays.js';
import { Webhooks } from './webhooks/webhooks.js';

export interface Store extends Aggregates, Changing {
  /**
   * Returns a store for one call that may be attempted again. The request ids of its changes are derived from `seed`,
   * so that scripts recognise changes that an earlier attempt made (law 4). `again` is true if there may have been an
   * earlier attempt. If so, the store looks for the earlier change before it looks up the data that a change needs.
   */
  under(seed: string, again: boolean, origin?: CallOrigin): Store;
  /**
   * Runs the checks that precede a control change. If an earlier attempt of the call already made the change, skips the
   * checks, because they could now fail.
   */
  unlessApplied(check: () => Promise<void>): Promise<void>;
  /**
   * Returns this store for a durable call. The returned store adds to `changes` each partition that the call changes.
   */
  noting(changes: Changes): Store;
}

/** The fields that every store's methods use. */
type Own = { readonly context: StoreContext } & Pick<Store, 'unlessApplied'>;

type Aggregates = ReturnType<typeof createShared> & {
  readonly notices: ReturnType<typeof createNotices>;
};

type Defaulted = 'time' | 'random' | 'replicas' | 'transferConsent' | 'editAfterPress' | 'baseUrl';

/** The parts and settings of a store. TRANSFER_CONSENT is off and EDIT_AFTER_PRESS is on by default. */
export interface StoreOptions
  extends Omit<StoreContext, 'requestId' | 'uniqueText' | 'again' | Defaulted>,
    Partial<Pick<StoreContext, Defaulted>> {
  readonly hints: Hints;
  /**
   * Wakes a delivery worker for a bot with a webhook. If a wake-up is lost, a sweep finds the bot later, so the
   * delivery is only delayed.
   */
  readonly wake?: (bot: number) => void;
  /** The settings RATE_PER_…. An absent rate is unlimited. */
  readonly rates?: Rates;
  /** The settings UPLOAD_BYTES_PER_DAY and UPLOAD_BYTES_TOTAL. If absent, uploads are unlimited. */
  readonly uploadBounds?: UploadBounds;
  /** The settings GUESSES_BURST and GUESSES_PER_MINUTE. If absent, guesses are unlimited. */
  readonly guessing?: Guessing;
  /**
   * Whether this node records open browser windows. People with an open window get no notifications. Off by default.
   */
  readonly notingWindows?: boolean;
  readonly onError: (error: unknown) => void;
}

function createParts(shared: StoreContext, { hints, onError, wake = () => {} }: StoreOptions) {
  const control = new ControlCopies(shared);
  const auth = new Auth(shared, control, hints);
  const queues = createQueues(shared);
  const forwarder = new Forwarder(shared, queues, wake, onError);
  const webhooks = new Webhooks(shared, control, queues, wake);
  const access = createWriteAccessCopies(shared);
  const chats = new Chats(shared, control, forwarder);
  const removal = createRemovalFollowing(shared, { control, auth, webhooks, chats });
  const records = createRecords(shared);
  const readBack = new ReadBack(shared, { chats, control, queues, access });
  const pollNumber = createPollNumbers(shared.time);
  const cold = new PostReadBack(shared, chats, control);
  return {
    onError,
    wake,
    db: shared.db,
    control,
    auth,
    queues,
    forwarder,
    webhooks,
    replays: new Replays(shared, queues, webhooks, wake),
    identities: createIdentities(shared, control, auth),
    access,
    chats,
    removal,
    bots: new Bots(shared, shared.db, { control, auth, queues, webhooks, access, removal }),
    records,
    readBack,
    pendingEdits: new PendingEdits(shared, auth, readBack, forwarder, onError),
    erase: createErase(shared, readBack),
    history: new History(shared, chats, records),
    cold,
    posts: new Posts(shared, cold, createRepeats(shared, chats, records)),
    postCounts: createPostCounts(shared, cold),
    votes: new Votes(shared, readBack, forwarder, pollNumber),
    inlineIds: createInlineIds(shared.secrets),
    pollNumber,
  };
}

type Parts = ReturnType<typeof createParts>;

/**
 * The parts of the store that make changes. They have no state, and use the request ids of the call for which they were
 * created.
 */
const changing = {
  callbacks: (own: StoreContext, p: Parts) => createCallbacks(own, p.readBack, p.forwarder, p.inlineIds),
  drafts: (own: StoreContext, p: Parts) => createMessageDrafts(own, p.readBack, p.forwarder),
  messages: (own: StoreContext, p: Parts) =>
    new Messages(own, p.readBack, p.forwarder, createRepeats(own, p.chats, p.records), p.pendingEdits),
  pins: (own: StoreContext, p: Parts) => createPins(own, p.readBack, p.forwarder),
  posts: (own: StoreContext, p: Parts) => new Posts(own, p.cold, createRepeats(own, p.chats, p.records)),
  scheduledPosts: (own: StoreContext) => createScheduledPosts(own),
  votes: (own: StoreContext, p: Parts) => new Votes(own, p.readBack, p.forwarder, p.pollNumber),
  inline: (own: StoreContext, p: Parts) => new InlineQueries(own, p),
  accounts: (own: StoreContext, p: Parts) => new Accounts(own, p.db, p, p.onError),
  chats: (own: StoreContext, p: Parts) => new Chats(own, p.control, p.forwarder),
  people: (own: StoreContext, p: Parts) => createPeople(own, p.control, p.chats),
  bots: (own: StoreContext, p: Parts) => new Bots(own, p.db, p),
  webhooks: (own: StoreContext, p: Parts) => new Webhooks(own, p.control, p.queues, p.wake),
  replays: (own: StoreContext, p: Parts) => new Replays(own, p.queues, p.webhooks, p.wake),
  historyReplays: (own: StoreContext, p: Parts) => new HistoryReplays(own, p.queues, p.webhooks, p.wake),
  signingSecrets: (own: StoreContext, p: Parts) => createSigningSecrets(own, p.bots, p.webhooks),
  oversight: (own: StoreContext, p: Parts) => createOversight(own, p),
  users: (own: StoreContext, p: Parts) => createUsers(own, p.db, p.control, p.auth, p.identities),
  profiles: (own: StoreContext, p: Parts) => createProfiles(own, p.control, p.auth, p.chats),
  sessions: (own: StoreContext, p: Parts) => createSessions(own, p.control, p.auth),
  identities: (own: StoreContext, p: Parts) => createIdentities(own, p.control, p.auth),
  pictures: (own: StoreContext, p: Parts) => createPictures(own, p.db, p.control, p.bots),
  stickerSets: (own: StoreContext) => createStickerSets(own),
};

type Changing = { readonly [K in keyof typeof changing]: ReturnType<(typeof changing)[K]> };

function createShared(shared: StoreContext, parts: Parts, options: StoreOptions) {
  const { hints, onError, rates = {} } = options;
  const { control, auth, queues, forwarder, webhooks, chats, records, history, postCounts, pendingEdits } =
    parts;
  const presence = createPresence(shared, { noting: options.notingWindows ?? false, onError });
  const fairUse = createFairUse(shared, rates, async (chat, bot) =>
    isInChat((await chats.member(chat, bot)).status),
  );
  return {
    time: shared.time,
    random: shared.random,
    auth,
    queues,
    forwarder,
    history,
    search: new Search(shared, chats, records),
    postCounts,
    pendingEdits,
    activity: new Activity(shared, (user, calls) => fairUse?.more({ id: user, isBot: false }, calls)),
    postIds: createPostIds(shared.secrets),
    postWatches: createPostWatches(shared, hints),
    readMarks: createReadMarks(shared, chats),
    mutes: createMutes(shared, chats),
    places: createPlaces(shared, chats),
    personDrafts: createPersonDrafts(shared),
    push: createPush(shared),
    presence,
    fairUse,
    uploads: createUploads(shared, options.uploadBounds ?? { bytesPerDay: 0, bytesTotal: 0 }),
    lookUps: createLookUps(shared),
    actionRates: createActionRates(shared),
    linkPreviews: createLinkPreviews(shared),
    polls: new Polls(shared, hints, queues, auth),
    inlineIds: parts.inlineIds,
    inlineWaits: new InlineWaits(shared, hints),
    streams: new Streams({ context: shared, hints, chats, records }, presence),
    sweep: new Sweep(shared, { ...parts, accounts: changing.accounts(shared, parts) }, onError),
    durability: new Durability(shared, hints),
    idempotency: createIdempotency(shared),
    deliveries: createDeliveries(shared, hints),
    attempts: createAttempts(shared, webhooks),
    keptUpdates: createKeptUpdates(shared),
    audit: createAudit(shared),
    admins: createAdmins(shared, onError),
    retention: new Retention(shared, parts.erase),
    exports: createExports(shared),
    leaks: createLeaks(shared, control, auth),
    guesses: new Guesses(shared, options.guessing ?? { burst: 0, perMinute: 1 }),
    rotation: (connection: Pick<RedisServers, 'nodes'>) => new Rotation(shared, control, connection),
    management: createManagement(shared, control, webhooks),
  };
}

export function createStore(options: StoreOptions): Store {
  const { time = systemTime, random = systemRandom } = options;
  const uniqueText = createUniqueText(random);
  const shared: StoreContext = {
    replicas: noReplicas,
    transferConsent: false,
    editAfterPress: true,
    durable: false,
    baseUrl: '',
    ...options,
    time,
    random,
    uniqueText,
    requestId: uniqueText,
    again: false,
  };
  const parts = createParts(shared, options);
  const aggregates = {
    ...createShared(shared, parts, options),
    notices: createNotices(shared, () => store, options.onError),
    noting(this: Own, changes: Changes): Store {
      const { context, unlessApplied } = this;
      const scripts = notingRunner(context.scripts, context.keys, changes, (partition) =>
        store.durability.soon(partition),
      );
      return storeOf({ ...context, scripts, durable: true }, unlessApplied);
    },
    under(this: Own, seed: string, again: boolean, origin?: CallOrigin): Store {
      const { draw, next } = requestIdsOf(seed, origin);
      const db = appliedOnce(shared.db, draw);
      const shards = shardsOnce(shared.shards, (shard, partition) => appliedOnce(shard, draw, partition));
      return storeOf({ ...this.context, db, shards, requestId: draw, again }, async (check) => {
        if (!again || !(await wasApplied(shared.db, next()))) await check();
      });
    },
  };
  /** The prototype of all stores. A part that makes changes is created when a store first uses it. */
  const prototype = Object.create(aggregates) as typeof aggregates;
  for (const [name, create] of Object.entries(changing))
    Object.defineProperty(prototype, name, {
      get(this: { readonly context: StoreContext }) {
        const value = create(this.context, parts);
        Object.defineProperty(this, name, { value });
        return value;
      },
    });
  const storeOf = (context: StoreContext, unlessApplied: Store['unlessApplied']): Store =>
    Object.assign(Object.create(prototype), { context, unlessApplied });
  const store = storeOf(shared, (check) => check());
  return store;
}
