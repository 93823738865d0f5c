/** The complete store: all aggregates over one Redis, one Postgres and one set of keys. */
import { noReplicas, type Replicas } from '../postgres/replicas.js';
import { appliedOnce, type Database, wasApplied } from '../postgres/sql.js';
import type { RedisServers } from '../redis/connection.js';
import type { Hints } from '../redis/hints.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { type Admins, createAdmins } from './access/admins.js';
import { type Audit, createAudit } from './access/audit.js';
import { type Auth, createAuth } from './access/auth.js';
import { createFairUse, type FairUse, type Rates } from './access/fair_use.js';
import { createGuesses, type Guesses, type Guessing } from './access/guesses.js';
import { createLeaks, type Leaks } from './access/leaks.js';
import { createLookUps, type LookUps } from './access/look_ups.js';
import { createUploads, type UploadBounds, type Uploads } from './access/uploads.js';
import { createWriteAccessCopies } from './access/write_access.js';
import { type Accounts, createAccounts } from './accounts/accounts.js';
import { createErase } from './accounts/erasure.js';
import { createExports, type Exports } from './accounts/exports.js';
import { createIdentities, type Identities } from './accounts/identities.js';
import { createNotices, type Notices } from './accounts/notices.js';
import { createOversight, type Oversight } from './accounts/oversight.js';
import { createRetention, type Retention } from './accounts/retention.js';
import { createUsers, type Users } from './accounts/users.js';
import { type Bots, createBots } from './bots/bots.js';
import { createManagement, type Management } from './bots/management.js';
import { createPictures, type Pictures } from './bots/pictures.js';
import { createRemovalFollowing } from './bots/removal.js';
import { createSigningSecrets, type SigningSecrets } from './bots/signing_secrets.js';
import { type Activity, createActivity } from './chats/activity.js';
import { type Chats, createChats, isPresent } from './chats/chats.js';
import { createHistory, type History } from './chats/history.js';
import { createMutes, type Mutes } from './chats/mutes.js';
import { createPresence, type Presence } from './chats/presence.js';
import { createPush, type Push } from './chats/push.js';
import { createReadMarks, type ReadMarks } from './chats/read_marks.js';
import { createStreams, type Streams } from './chats/streams.js';
import {
  type CallOrigin,
  requestIdsOf,
  type StoreContext,
  type StoreShards,
  shardsOnce,
  uniqueText,
} from './core/context.js';
import { createControlCopies } from './core/control.js';
import { createIdempotency, type Idempotency } from './core/idempotency.js';
import type { Keys } from './core/keys.js';
import { createRecords } from './core/records.js';
import type { Secrets } from './core/secrets.js';
import { createRotation, type Rotation } from './maintenance/rotation.js';
import { createSweep, type Sweep } from './maintenance/sweep.js';
import { type Batches, createBatches } from './messages/batches.js';
import { type Callbacks, createCallbacks } from './messages/callbacks.js';
import { createMessages, type Messages } from './messages/messages.js';
import { createPins, type Pins } from './messages/pins.js';
import { createReadBack } from './messages/read_back.js';
import { createRepeats } from './messages/repeats.js';
import { createPostIds } from './posts/post_ids.js';
import { createPostWatches } from './posts/post_watches.js';
import { createPosts, type Posts } from './posts/posts.js';
import { createForwarder, type Forwarder } from './updates/forwarder.js';
import { createPolls, type Polls } from './updates/polls.js';
import { createQueues, type Queues } from './updates/queues.js';
import { type Attempts, createAttempts } from './webhooks/attempts.js';
import { createDeliveries, type Deliveries } from './webhooks/deliveries.js';
import { createReplays, type Replays } from './webhooks/replays.js';
import { createWebhooks, type Webhooks } from './webhooks/webhooks.js';

export interface Store {
  readonly accounts: Accounts;
  readonly auth: Auth;
  readonly bots: Bots;
  readonly users: Users;
  readonly identities: Identities;
  /** Rate limits; undefined if none are set. */
  readonly fairUse: FairUse | undefined;
  readonly uploads: Uploads;
  readonly lookUps: LookUps;
  readonly pictures: Pictures;
  readonly chats: Chats;
  readonly activity: Activity;
  readonly messages: Messages & Batches;
  readonly pins: Pins;
  readonly history: History;
  readonly readMarks: ReadMarks;
  readonly mutes: Mutes;
  readonly push: Push;
  readonly presence: Presence;
  readonly queues: Queues;
  readonly forwarder: Forwarder;
  readonly callbacks: Callbacks;
  readonly polls: Polls;
  readonly streams: Streams;
  readonly sweep: Sweep;
  readonly idempotency: Idempotency;
  /**
   * A store for a single call that may run again on retry. Its changes derive their request ids from `seed`, so scripts recognise
   * changes applied by an earlier run (law 4). `again`: there may have been an earlier run, so changes that need a
   * lookup first check whether they were already applied.
   */
  under(seed: string, again: boolean, origin?: CallOrigin): Store;
  readonly posts: Posts;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly attempts: Attempts;
  readonly audit: Audit;
  readonly admins: Admins;
  readonly oversight: Oversight;
  readonly replays: Replays;
  readonly signingSecrets: SigningSecrets;
  readonly retention: Retention;
  readonly exports: Exports;
  readonly leaks: Leaks;
  readonly guesses: Guesses;
  /** Creates the key rotation for the given Redis servers. */
  rotation(connection: Pick<RedisServers, 'nodes'>): Rotation;
  readonly notices: Notices;
  readonly management: Management;
  /**
   * Runs the checks that precede a control change. Skips them if an earlier run of the call already made the change,
   * because that change may make them fail.
   */
  unlessApplied(check: () => Promise<void>): Promise<void>;
}

export interface StoreOptions {
  readonly db: Database;
  /** Standbys of Postgres for reads: setting DATABASE_REPLICA_URLS. */
  readonly replicas?: Replicas;
  /** The databases of the tables written behind. */
  readonly shards: StoreShards;
  readonly scripts: ScriptRunner;
  readonly hints: Hints;
  readonly keys: Keys;
  readonly secrets: Secrets;
  /** Time in ms for which records from Postgres stay in Redis: setting HOT_TTL_MS. */
  readonly hotTtlMs: number;
  /** Wakes a delivery worker for a bot with a webhook. May be lost, because a sweep finds the bot later. */
  readonly wake?: (bot: number) => void;
  /** Number of reactors listed per emoji: setting REACTORS_LISTED. */
  readonly reactorsListed: number;
  /** Issuer of the identity provider: setting JWT_ISSUER. */
  readonly issuer?: string | undefined;
  /** Setting BOTS_PER_OWNER; limits.bots_per_owner_max if absent. */
  readonly botsPerOwner?: number | undefined;
  /** Settings RATE_PER_…; absent ones are unlimited. */
  readonly rates?: Rates;
  /** Settings UPLOAD_BYTES_PER_DAY and UPLOAD_BYTES_TOTAL; unlimited if absent. */
  readonly uploadBounds?: UploadBounds;
  /** Settings GUESSES_BURST and GUESSES_PER_MINUTE; unlimited if absent. */
  readonly guessing?: Guessing;
  /** Setting TRANSFER_CONSENT; off by default. */
  readonly transferConsent?: boolean;
  /** Whether this node records who has windows open on it, so that only others get notifications. Off by default. */
  readonly notingWindows?: boolean;
  /** Called for background failures, which are retried. */
  readonly onError: (error: unknown) => void;
}

export function createStore({
  hints,
  onError,
  wake = () => {},
  guessing = { burst: 0, perMinute: 1 },
  rates = {},
  uploadBounds = { bytesPerDay: 0, bytesTotal: 0 },
  notingWindows = false,
  ...context
}: StoreOptions): Store {
  const { transferConsent = false, replicas = noReplicas } = context;
  const shared: StoreContext = { ...context, replicas, transferConsent, requestId: uniqueText, again: false };
  const control = createControlCopies(shared);
  const auth = createAuth(shared, control, hints);
  const queues = createQueues(shared);
  const forwarder = createForwarder(shared, queues, wake, onError);
  const webhooks = createWebhooks(shared, control, queues, wake);
  const replays = createReplays(shared, queues, wake);
  const identities = createIdentities(shared, control, auth);
  const access = createWriteAccessCopies(shared);
  const chats = createChats(shared, control, forwarder);
  const removal = createRemovalFollowing(shared, { control, auth, webhooks, chats });
  const parts = { control, auth, queues, webhooks, access, removal };
  const bots = createBots(shared, shared.db, parts);
  const records = createRecords(shared);
  const readBack = createReadBack(shared, { chats, control, queues, access });
  const erase = createErase(shared, readBack);
  const watches = createPostWatches(shared, hints);
  const postIds = createPostIds(shared.secrets);
  /** The aggregates that draw request ids. They are stateless, and created again for each call under an idempotency key. */
  const changing = (own: StoreContext) => {
    const repeats = createRepeats(own, chats, records);
    return {
      callbacks: createCallbacks(own, readBack, forwarder),
      messages: {
        ...createMessages(own, readBack, forwarder, repeats),
        ...createBatches(own, readBack, forwarder, repeats),
      },
      pins: createPins(own, readBack, forwarder),
      posts: createPosts(own, { chats, control, ids: postIds }, watches, repeats),
    };
  };
  const own = changing(shared);
  const history = createHistory(shared, chats, records);
  const ending = { control, auth, chats, history, posts: own.posts, identities, removal, erase };
  const presence = createPresence(shared, { noting: notingWindows, onError });
  const accounts = createAccounts(shared, shared.db, ending, onError);
  const fairUse = createFairUse(shared, rates, async (chat, bot) =>
    isPresent((await chats.member(chat, bot)).status),
  );
  const store: Store = {
    ...own,
    accounts,
    auth,
    chats,
    queues,
    forwarder,
    history,
    activity: createActivity(shared, (user, calls) => fairUse?.more({ id: user, isBot: false }, calls)),
    readMarks: createReadMarks(shared, chats),
    mutes: createMutes(shared, chats),
    push: createPush(shared),
    presence,
    bots,
    users: createUsers(shared, shared.db, control, auth, identities),
    identities,
    fairUse,
    uploads: createUploads(shared, uploadBounds),
    lookUps: createLookUps(shared),
    pictures: createPictures(shared, shared.db, control, bots),
    polls: createPolls(shared, hints, queues, auth),
    streams: createStreams(shared, hints, chats, records, presence),
    sweep: createSweep(
      shared,
      {
        control,
        chats,
        auth,
        forwarder,
        webhooks,
        posts: own.posts,
        replays,
        access,
        removal,
        identities,
        accounts,
      },
      onError,
    ),
    idempotency: createIdempotency(shared),
    webhooks,
    deliveries: createDeliveries(shared, hints),
    attempts: createAttempts(shared),
    audit: createAudit(shared),
    admins: createAdmins(shared, onError),
    oversight: createOversight(shared, parts),
    replays,
    signingSecrets: createSigningSecrets(shared, bots, webhooks),
    retention: createRetention(shared, erase),
    exports: createExports(shared),
    leaks: createLeaks(shared, control, auth),
    guesses: createGuesses(shared, guessing),
    rotation: (connection) => createRotation(shared, control, connection),
    management: createManagement(shared, control, webhooks),
    notices: createNotices(shared, () => store, onError),
    async unlessApplied(check) {
      await check();
    },
    under(seed, again, origin) {
      const { draw, next } = requestIdsOf(seed, origin);
      const db = appliedOnce(shared.db, draw);
      const shards = shardsOnce(shared.shards, (shard) => appliedOnce(shard, draw));
      const own = { ...shared, db, shards, requestId: draw, again };
      return {
        ...store,
        ...changing(own),
        accounts: createAccounts(own, shared.db, ending, onError),
        chats: createChats(own, control, forwarder),
        bots: createBots(own, shared.db, parts),
        webhooks: createWebhooks(own, control, queues, wake),
        replays: createReplays(own, queues, wake),
        signingSecrets: createSigningSecrets(own, bots, webhooks),
        oversight: createOversight(own, parts),
        users: createUsers(own, shared.db, control, auth, identities),
        identities: createIdentities(own, control, auth),
        pictures: createPictures(own, shared.db, control, bots),
        async unlessApplied(check) {
          if (!again || !(await wasApplied(shared.db, next()))) await check();
        },
      };
    },
  };
  return store;
}
