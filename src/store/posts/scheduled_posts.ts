/** Manages the scheduled posts of channels. They are stored only in Postgres (decision 0087). */
import type { ErrorName } from '../../errors.js';
import * as rows from '../../postgres/chats/scheduled_posts.js';
import { tellScheduled } from '../chats/person_hints.js';
import { type Content, pack, packContent, unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, sharedChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

export interface ScheduledPost {
  readonly id: number;
  readonly chat: ChatRef;
  readonly author: number;
  readonly content: Content;
  /** Unix time in seconds. */
  readonly publishAt: number;
  readonly failure: ErrorName | null;
}

export interface NewPost {
  readonly content: Content;
  readonly files: readonly string[];
}

export interface ClaimedPost extends ScheduledPost {
  /** The seed for `Store.under`. All attempts to publish the post use the same seed. */
  readonly seed: string;
  /**
   * True if nobody knows whether an earlier attempt published the post. That attempt began so long ago that Redis may
   * have forgotten its request id.
   */
  readonly isUnknown: boolean;
}

/**
 * Packs a post with a file under the name `post`. Older versions of Petrel then find no text and do not publish the
 * post. Otherwise they would publish it without the file. Error: `entities_too_long`.
 */
function packPost(content: Content): Buffer {
  const bytes = packContent(content);
  return content.media === undefined ? bytes : pack({ post: content });
}

/**
 * Returns the content of a row. If the row is corrupt, returns content without a text, so that the other posts in the
 * batch or list are not affected. Publishing the corrupt post then fails, because a post needs a text or a file.
 */
function contentOf(bytes: Buffer): Content {
  try {
    const packed = unpack<(Content & { readonly post?: Content }) | null>(bytes);
    const content = packed?.post ?? packed;
    return typeof (content?.media?.id ?? content?.text) === 'string' ? (content as Content) : {};
  } catch {
    return {};
  }
}

function postOf(row: rows.ScheduledPostRow): ScheduledPost {
  return {
    id: row.id,
    chat: sharedChat(row.chat_id),
    author: row.user_id,
    content: contentOf(row.content),
    publishAt: row.publish_at,
    failure: row.failure as ErrorName | null,
  };
}

const claimedOf = (row: rows.ClaimedPost): ClaimedPost => ({
  ...postOf(row),
  seed: `scheduled.${row.id}.${row.seed}`,
  isUnknown: row.tried_ms > limits.scheduled_post_tries_ms_max,
});

/** The methods throw the errors of `postgres/chats/scheduled_posts.ts`. */
export function createScheduledPosts(context: StoreContext) {
  const { db } = context;
  const find = async (author: number, id: number): Promise<ScheduledPost | null> => {
    const row = await rows.loadScheduledPost(db, author, id);
    return row && postOf(row);
  };
  return {
    find,
    /**
     * Schedules a post. `files` are the keys of its uploaded files. `at` is Unix time in seconds. Returns null if the
     * post has meanwhile been published or deleted.
     */
    async add(
      chat: ChatRef,
      author: number,
      { content, files }: NewPost,
      at: number,
    ): Promise<ScheduledPost | null> {
      const post = { content: packPost(content), files };
      const id = await rows.addScheduled(db, chat.id, author, post, at);
      await tellScheduled(context, author, chat);
      return find(author, id);
    },
    /** Returns null if the post has meanwhile been published or deleted. */
    async change(chat: ChatRef, author: number, id: number, content: Content | null, at: number | null) {
      await rows.changeScheduled(db, chat.id, author, id, { content: content && packPost(content), at });
      await tellScheduled(context, author, chat);
      return find(author, id);
    },
    async remove(chat: ChatRef, author: number, id: number) {
      await rows.deleteScheduled(db, chat.id, author, id);
      await tellScheduled(context, author, chat);
    },
    async list(chat: ChatRef, author: number, after: number, limit: number): Promise<ScheduledPost[]> {
      return (await rows.loadScheduled(db, chat.id, author, after, limit)).map(postOf);
    },
    async listBy(author: number, after: number, limit: number): Promise<ScheduledPost[]> {
      return (await rows.loadScheduledBy(db, author, after, limit)).map(postOf);
    },
    /** Returns the time in ms until the next post is due, or null if nothing is scheduled. */
    untilDue: () => rows.untilScheduledDue(db),
    /** Claims due posts that no other process is publishing. */
    async claimDue(): Promise<ClaimedPost[]> {
      const { scheduled_posts_batch_max: most, scheduled_post_claim_ms: forMs } = limits;
      return (await rows.claimDue(db, most, forMs)).map(claimedOf);
    },
    /** Claims one post, even if it is not due. */
    async claim(chat: ChatRef, author: number, id: number): Promise<ClaimedPost> {
      return claimedOf(await rows.claimOne(db, chat.id, author, id, limits.scheduled_post_claim_ms));
    },
    /** Removes a post that was published. */
    async published({ id, author, chat }: ScheduledPost) {
      await rows.deletePublished(db, id);
      await tellScheduled(context, author, chat);
    },
    async failed({ id, author, chat }: ScheduledPost, failure: ErrorName) {
      await rows.noteFailure(db, id, failure);
      await tellScheduled(context, author, chat);
    },
    putBack: ({ id }: ScheduledPost) => rows.putBack(db, id),
    /** Deletes old posts that could not be published, and posts of deleted accounts. */
    async clean() {
      await rows.deleteOldFailures(db, limits.scheduled_post_failure_age_ms);
      await rows.deleteOfDeleted(db);
    },
  };
}
