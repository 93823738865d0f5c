/** Reads posts of public channels for readers without an account (decision 0075). */
import { signOf } from '../content/kinds.js';
import { fail } from '../errors.js';
import { withoutSpoilers } from '../rules/shown_text.js';
import { type Media, messageFlags } from '../store/core/codec.js';
import type { Store } from '../store/store.js';
import { postMessage, postOf } from './posts.js';

/**
 * Returns the https URL of a photo on another host. Anyone can load such a photo without an account. Returns nothing
 * for a photo that the sender covered.
 */
const pictureOf = ({ type, url, spoiler }: Media): string | undefined =>
  type === 'photo' && !spoiler ? url : undefined;

/**
 * Returns a post of a public channel without its author. Error: `post_not_found`, also for a post of a private channel
 * and for a protected post. A preview card would be a copy, and a protected post must not be copied.
 */
export async function publicPost(store: Store, name: string) {
  const state = await store.posts.findPublic(postOf(store, name));
  const { record, peer } = await postMessage(store, state);
  if ((record.flags & messageFlags.protected) !== 0) return fail('post_not_found');
  const { content } = record;
  return {
    title: peer.n,
    date: record.date,
    sign: signOf(content, ''),
    text: withoutSpoilers(content.text ?? '', content.entities),
    picture: content.media && pictureOf(content.media),
    reactions: state.reactions.map(({ emoji, count }) => ({ emoji, count })),
  };
}
