/** Builds links that people share. */
import { copyText } from './clipboard.js';
import { attempt } from './failures.js';
import { say } from './notes.js';
import type { Post } from './types.js';
import { t } from './words.js';

/** Copies the address of a post, which readers without an account can open too. */
export const copyPostLink = ({ external_id }: Pick<Post, 'external_id'>) =>
  attempt(async () => {
    await copyText(`${location.origin}/post/${external_id}`);
    say(t('copied'));
  });
