/** Shows the message that a bot is writing, with a button that stops the bot. */
import { botDrafts } from '../model/bot_drafts.js';
import type { MessageDraft } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { RichText } from './text.js';

export function DraftBubble({ chat, draft, name }: { chat: number; draft: MessageDraft; name: string }) {
  const { text, entities, draft_id, can_stop, stopped } = draft;
  // Screen readers announce only that the bot is writing. They read the message when it is complete, and do not read
  // each change of the draft.
  return (
    <article className="message" aria-label={name} aria-live="off" aria-busy={!stopped}>
      <div className={stopped ? 'bubble draft stopped' : 'bubble draft'}>
        <div className="words" dir="auto">
          {text === '' ? (
            <span className="thinking">{t('thinking')}</span>
          ) : (
            <span className="text">
              <RichText text={text} entities={entities} />
            </span>
          )}
        </div>
      </div>
      {can_stop && (
        <button type="button" className="draft-stop" onClick={() => void botDrafts.stop(chat, draft_id)}>
          <Icon name="stop" size={16} />
          {t('stop_draft')}
        </button>
      )}
    </article>
  );
}
