/** Shows the members that match a typed mention. */
import { useEffect, useRef } from 'react';
import { personName } from '../names.js';
import { t } from '../words.js';
import type { useMentions } from './mentions.js';
import { Face } from './ui.js';

type ListProps = Pick<ReturnType<typeof useMentions>, 'id' | 'list' | 'at' | 'choose'>;

/** Shows the list. The focus stays in the text field, whose keys select a member. */
export default function MentionList({ id, list, at, choose }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when another member is selected
  useEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return (
    <div
      ref={box}
      className="suggestions"
      id={id}
      role="listbox"
      tabIndex={-1}
      aria-label={t('mention')}
      onMouseDown={(event) => event.preventDefault()}
    >
      {list.map((user, i) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the text field keeps the focus, see aria-activedescendant
        // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the text field selects
        <div
          key={user.id}
          id={`${id}-${i}`}
          className="mention-option"
          role="option"
          aria-selected={i === at}
          onClick={() => choose(user)}
        >
          <Face id={user.id} name={personName(user)} size={32} />
          <strong>
            <bdi>{personName(user)}</bdi>
          </strong>
          {user.username && <span>@{user.username}</span>}
          {user.is_bot && <span>{t('bot')}</span>}
        </div>
      ))}
    </div>
  );
}
