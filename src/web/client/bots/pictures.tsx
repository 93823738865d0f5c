/** Shows the avatar and the start picture of a bot, and lets the owner change them. */
import { profiles } from '../names.js';
import type { BotProps } from '../types.js';
import { PictureEditor, type PictureKind } from '../view/picture_editor.js';
import { Face, useFile } from '../view/ui.js';
import { t } from '../words.js';

function PictureCard({ kind, bot, changed }: BotProps & { kind: PictureKind }) {
  const present = bot[kind];
  const { url } = useFile(kind === 'start_picture' ? present?.url : undefined);
  return (
    <section className="card stack">
      <h3>{t(kind)}</h3>
      <p className="muted">{t(`${kind}_hint`)}</p>
      {kind === 'avatar' ? (
        <Face id={bot.id} name={bot.name} picture={bot.avatar} size={128} />
      ) : (
        <div className="start-picture">
          {url ? <img src={url} alt={t('start_picture')} /> : <span>640 × 360</span>}
        </div>
      )}
      <PictureEditor
        kind={kind}
        path={`/api/me/bots/${bot.id}/${kind}`}
        isSet={present !== undefined}
        changed={() => {
          void profiles.load(bot.username, true);
          changed();
        }}
      />
    </section>
  );
}

export function Pictures(props: BotProps) {
  return (
    <>
      <PictureCard {...props} kind="avatar" />
      <PictureCard {...props} kind="start_picture" />
    </>
  );
}
