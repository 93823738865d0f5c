/** Shows the dialogs that keyboard shortcuts open: the choice of a chat, and the list of all shortcuts. */
import { formats } from '../model/format_keys.js';
import { formatSamples } from '../model/formats.js';
import { go } from '../route.js';
import { t, type WordKey } from '../words.js';
import { ChooseChat } from './choose_chat.js';
import { formatWord, keysOf } from './formatting_toolbar.js';
import { Dialog } from './ui.js';

const shortcuts: ReadonlyArray<readonly [keys: string, effect: WordKey]> = [
  ['Ctrl+K', 'find_chat'],
  ['Enter', 'send'],
  ['Shift+Enter', 'new_line'],
  ['↑', 'edit_last'],
  ['Esc', 'close'],
  ['?', 'shortcuts'],
];

export type Opened = 'chats' | 'shortcuts';

export default function Shortcuts({ opened, close }: { opened: Opened; close: () => void }) {
  if (opened === 'chats')
    return (
      <ChooseChat
        title={t('find_chat')}
        all
        choose={({ id }) => {
          close();
          go(`chat/${id}`);
        }}
        close={close}
      />
    );
  return (
    <Dialog title={t('shortcuts')} close={close}>
      <dl className="shortcuts">
        {shortcuts.map(([keys, effect]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{t(effect)}</dd>
          </div>
        ))}
      </dl>
      <h3>{t('formatting')}</h3>
      <dl className="shortcuts">
        {formats.map((format) => (
          <div key={format}>
            <dt>
              <kbd>{keysOf(format)}</kbd>
            </dt>
            <dd>{t(formatWord(format))}</dd>
            <dd>
              <code>{formatSamples[format]}</code>
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
