/** Lists every page and dialog of the application, and how to open it. */
import type { Page } from 'playwright-core';
import { type Gallery, picture } from './gallery.js';

export interface Scene {
  readonly name: string;
  readonly path: string;
  /** Who is signed in: alice if absent, nobody if null. */
  readonly who?: 'newcomer' | null;
  /**
   * True if the page depends on the size that the window has when the page opens. Such a page must be opened again for
   * another size.
   */
  readonly anew?: true;
  /**
   * Whether the scene looks different in each run, for example because it scrolls. The pictures of such a scene are not
   * compared.
   */
  readonly varies?: true;
  /** Runs on the opened page. `words` are the texts in its language. */
  readonly act?: (page: Page, words: Readonly<Record<string, string>>) => Promise<unknown>;
}

const menuOf = async (page: Page, text: string | RegExp) => {
  await page.getByRole('log').locator('article').getByText(text).last().click({ button: 'right' });
  await page.getByRole('menu').waitFor();
};
const press = (page: Page, name: string | undefined) =>
  page
    .getByRole('button', { name: name ?? '', exact: true })
    .last()
    .click();
/** The text field of the open chat. */
const field = (page: Page) => page.locator('.composer textarea');
const scroll = async (page: Page, by: number) => {
  await page.getByRole('log').hover();
  await page.mouse.wheel(0, by);
  await page.waitForTimeout(700);
};
/** Attaches two pictures and a document. */
const attach = async (page: Page, words: Readonly<Record<string, string>>) => {
  const pictures = [picture(24), picture(205)].map(async (bytes, i) => ({
    name: `summit ${i}.jpg`,
    mimeType: 'image/jpeg',
    buffer: await bytes,
  }));
  const route = {
    name: 'a-long-walk-along-the-ridge.gpx',
    mimeType: '',
    buffer: Buffer.alloc(48_000, 'gpx'),
  };
  await page
    .getByLabel(words.attach ?? '', { exact: true })
    .last()
    .setInputFiles([...(await Promise.all(pictures)), route]);
};
const dialog = (page: Page) => page.getByRole('dialog').waitFor();

export function scenesOf({ bob, guide, quiet, fresh, group, channel, post }: Gallery): readonly Scene[] {
  const own = `#/bots/${guide.id}`;
  const direct = `#/chat/${guide.id}`;
  const texts = `#/chat/${quiet.id}`;
  const info: NonNullable<Scene['act']> = async (page) => {
    await page.locator('.chat-title').click();
    await dialog(page);
    await page.waitForTimeout(300);
  };
  return [
    { name: 'sign_in', path: '#/demo/gallery', who: null },
    { name: 'chats', path: '' },
    { name: 'chats_none', path: '', who: 'newcomer' },
    {
      name: 'chat_menu',
      anew: true,
      path: '',
      act: async (page) => {
        await page.locator(`.chat-row[href="#/chat/${group}"]`).click({ button: 'right' });
        await page.getByRole('menu').waitFor();
      },
    },
    { name: 'archive', path: '#/archive' },
    {
      name: 'new_chat',
      path: '',
      act: async (page, w) => {
        await press(page, w.new_chat);
        await dialog(page);
        await page.getByRole('dialog').getByRole('radio').nth(1).check();
        await page.getByRole('dialog').getByRole('checkbox').check();
      },
    },
    {
      name: 'new_chat_person',
      path: '',
      act: async (page, w) => {
        await press(page, w.new_chat);
        await dialog(page);
      },
    },
    { name: 'person', path: `#/person/${bob.username}` },
    {
      name: 'find_chat',
      path: '',
      act: async (page) => {
        await page.keyboard.press('Control+k');
        await dialog(page);
      },
    },
    {
      name: 'shortcuts',
      path: '',
      act: async (page) => {
        await page.keyboard.press('?');
        await dialog(page);
      },
    },
    { name: 'direct', path: direct },
    {
      name: 'direct_media',
      varies: true,
      anew: true,
      path: direct,
      act: async (page) => {
        const album = page.getByRole('log').getByText('From last year, hour by hour');
        // In a narrow window, the page draws the album only when the album is nearly in view.
        for (let n = 0; n < 20 && !(await album.isVisible()); n++) await scroll(page, -300);
        await album.evaluate((element) => element.scrollIntoView({ block: 'end' }));
        await page.waitForTimeout(500);
      },
    },
    {
      name: 'direct_top',
      anew: true,
      path: direct,
      act: async (page) => {
        await scroll(page, -9_000);
      },
    },
    {
      name: 'code',
      anew: true,
      path: texts,
      act: async (page) => {
        await scroll(page, -20_000);
        await scroll(page, 560);
        await page.getByRole('log').locator('.in-keyword').first().waitFor();
      },
    },
    {
      name: 'link_previews',
      anew: true,
      path: texts,
      act: async (page) => {
        await scroll(page, 20_000);
        await page.getByText('The ridge above the lake').first().waitFor();
      },
    },
    { name: 'message_menu', anew: true, path: direct, act: (page) => menuOf(page, /half past eight/) },
    {
      name: 'forward',
      path: direct,
      act: async (page, w) => {
        await menuOf(page, /half past eight/);
        await page.getByRole('menuitem', { name: w.forward ?? '', exact: true }).click();
        await dialog(page);
      },
    },
    {
      name: 'reply',
      path: direct,
      act: async (page, w) => {
        await menuOf(page, /half past eight/);
        await page.getByRole('menuitem', { name: w.reply ?? '', exact: true }).click();
        await field(page).fill('Half past eight it is. I bring a rope, two apples and my old camera.');
      },
    },
    {
      name: 'delete',
      path: `#/chat/${group}`,
      act: async (page, w) => {
        await menuOf(page, /Who comes/);
        await page.getByRole('menuitem', { name: w.delete ?? '', exact: true }).click();
        await dialog(page);
      },
    },
    {
      name: 'emoji',
      anew: true,
      path: direct,
      act: async (page, w) => {
        await press(page, w.emoji);
        await page.locator('.emoji-panel [frimousse-emoji]:visible').first().waitFor();
      },
    },
    {
      name: 'commands',
      anew: true,
      path: direct,
      act: async (page) => {
        await field(page).fill('/');
        await page.getByRole('option').first().waitFor();
      },
    },
    {
      name: 'formatting',
      anew: true,
      path: `#/chat/${group}`,
      act: async (page) => {
        await field(page).fill('Who brings **the map**?');
        await field(page).press('Control+a');
        await page.getByRole('toolbar').waitFor();
      },
    },
    {
      name: 'mentions',
      anew: true,
      path: `#/chat/${group}`,
      act: async (page) => {
        await field(page).fill('');
        await field(page).pressSequentially('@');
        await page.getByRole('option').first().waitFor();
      },
    },
    { name: 'bot_inline', path: `#/bots/${quiet.id}/inline` },
    {
      name: 'picture',
      path: direct,
      act: async (page) => {
        await scroll(page, -9_000);
        await page
          .locator('.picture')
          .first()
          .evaluate((button: HTMLElement) => button.click());
        await dialog(page);
      },
    },
    { name: 'bot_profile', path: direct, act: info },
    { name: 'group', path: `#/chat/${group}` },
    {
      name: 'search',
      path: '',
      act: async (page) => {
        await page.getByRole('searchbox').fill('o');
        await page.locator('.chat-row.found').first().waitFor();
      },
    },
    {
      name: 'search_in_chat',
      path: direct,
      act: async (page, w) => {
        await press(page, w.search_in_chat);
        await page.getByRole('searchbox').last().fill('the');
        await page.locator('.chat-row.found').first().waitFor();
      },
    },
    { name: 'group_members', path: `#/chat/${group}`, act: info },
    {
      name: 'group_edit',
      path: `#/chat/${group}`,
      act: async (page, words) => {
        await info(page, words);
        await press(page, words.edit);
        await page
          .getByRole('dialog')
          .getByRole('textbox', { name: words.description ?? '' })
          .waitFor();
      },
    },
    {
      name: 'group_changes',
      anew: true,
      path: `#/chat/${group}`,
      act: async (page) => {
        await scroll(page, -9_000);
      },
    },
    { name: 'channel', path: `#/chat/${channel}` },
    {
      name: 'scheduled',
      path: `#/chat/${channel}`,
      act: async (page, w) => {
        await press(page, w.scheduled_posts);
        await page.getByRole('dialog').getByRole('listitem').nth(1).waitFor();
      },
    },
    {
      name: 'typing',
      anew: true,
      path: `#/chat/${group}`,
      act: async (page) => {
        await page.getByRole('log').locator('article').first().waitFor();
        await page.evaluate(
          ([chat, token]) =>
            fetch(`/api/chats/${chat}/action`, {
              method: 'POST',
              headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
              body: JSON.stringify({ action: 'record_voice' }),
            }),
          [group, bob.token] as const,
        );
        await page.locator('.chat-title small.accent').waitFor();
      },
    },
    { name: 'posts', path: `#/chat/${channel}/posts` },
    { name: 'one_post', path: `#/post/${post}` },
    { name: 'post_missing', path: '#/post/none' },
    {
      name: 'quick_reactions',
      anew: true,
      path: `#/chat/${channel}/posts`,
      act: async (page, w) => {
        await page
          .getByRole('button', { name: w.add_reaction ?? '' })
          .first()
          .hover();
        await page.getByRole('group', { name: w.add_reaction ?? '' }).waitFor();
      },
    },
    {
      name: 'who_reacted',
      path: `#/chat/${channel}/posts`,
      act: async (page, w) => {
        await page
          .getByRole('button', { name: w.who_reacted ?? '' })
          .nth(1)
          .click();
        await dialog(page);
        await page.getByRole('dialog').locator('li').first().waitFor();
      },
    },
    {
      name: 'reaction_picker',
      anew: true,
      path: `#/chat/${channel}/posts`,
      act: async (page, w) => {
        await page
          .getByRole('button', { name: w.add_reaction ?? '' })
          .first()
          .click();
        await page.locator('.emoji-panel [frimousse-emoji]:visible').first().waitFor();
      },
    },
    { name: 'start', path: `#/bot/${fresh.username}` },
    { name: 'nobody', path: '#/to/nobody_at_all' },
    { name: 'outside', path: '#/chat/-7' },
    { name: 'bots', path: '#/bots' },
    { name: 'bots_none', path: '#/bots', who: 'newcomer' },
    { name: 'new_bot', path: '#/bots/new', act: dialog },
    { name: 'bot', path: own },
    {
      name: 'renew',
      path: own,
      act: async (page, w) => {
        await press(page, w.renew_token);
        await dialog(page);
      },
    },
    { name: 'texts', path: `${own}/texts` },
    { name: 'pictures', path: `${own}/pictures` },
    {
      name: 'crop',
      path: `${own}/pictures`,
      act: async (page) => {
        const buffer = await picture(150);
        await page
          .locator('input[type=file]')
          .first()
          .setInputFiles({ name: 'p.jpg', mimeType: 'image/jpeg', buffer });
        await page.getByRole('dialog').locator('img').waitFor();
        await page.waitForTimeout(300);
      },
    },
    { name: 'writers', path: `${own}/writers`, act: (page) => page.getByRole('radio').nth(1).check() },
    { name: 'webhook', path: `${own}/webhook` },
    {
      name: 'webhook_open',
      path: `${own}/webhook`,
      act: async (page) => {
        await page.locator('.attempts summary').last().waitFor();
        for (const row of [page.locator('.attempts').first(), page.locator('.attempts').last()])
          await row.locator('summary').first().click();
        await page.locator('.attempts').last().scrollIntoViewIfNeeded();
      },
    },
    {
      name: 'replays',
      path: `${own}/webhook`,
      act: async (page) => {
        await page.locator('.replays .facts').waitFor();
        await page.locator('.replays').evaluate((card) => card.scrollIntoView());
      },
    },
    {
      name: 'discard',
      path: `${own}/webhook`,
      act: async (page, w) => {
        await page.locator('.attempts summary').last().waitFor();
        await press(page, w.discard_all);
        await dialog(page);
      },
    },
    { name: 'transfer', path: `${own}/transfer` },
    {
      name: 'transfer_dialog',
      path: `${own}/transfer`,
      act: async (page) => {
        await page.locator('.page-body form input').fill('bob');
        await page.locator('.page-body form button[type=submit]').click();
        await dialog(page);
      },
    },
    { name: 'settings', path: '#/settings' },
    {
      name: 'attached',
      path: `#/chat/${group}`,
      act: async (page, w) => {
        await attach(page, w);
        await page.locator('.attached li').last().waitFor();
        await field(page).fill('From the summit');
      },
    },
    {
      name: 'drop_zone',
      path: direct,
      act: async (page) => {
        await page.locator('.main').evaluate((main) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(['x'], 'x.txt'));
          main.dispatchEvent(new DragEvent('dragover', { bubbles: true, cancelable: true, dataTransfer }));
        });
        await page.locator('.drop-zone').waitFor();
      },
    },
    // The next two scenes leave unsent messages in the group, so they come after most other scenes.
    {
      name: 'attachments_refused',
      path: `#/chat/${group}`,
      act: async (page, w) => {
        const description = 'Bad Request: IMAGE_PROCESS_FAILED';
        await page.route('**/albums', (route) =>
          route.fulfill({ status: 400, json: { ok: false, error_code: 400, description } }),
        );
        await attach(page, w);
        await press(page, w.send);
        await page.getByRole('log').getByRole('alert').last().waitFor();
      },
    },
    {
      name: 'attachments_sending',
      anew: true,
      path: `#/chat/${channel}`,
      act: async (page, w) => {
        await page.route('**/albums', () => {});
        await attach(page, w);
        await press(page, w.send);
        await page.getByRole('log').getByRole('progressbar').last().waitFor();
      },
    },
    {
      name: 'scheduled_new',
      anew: true,
      path: `#/chat/${channel}`,
      act: async (page, w) => {
        await field(page).fill('Snow above 2,000 m **tonight**. Take chains.');
        await press(page, w.scheduled_posts);
        const items = page.getByRole('dialog').getByRole('listitem');
        await items.nth(1).waitFor();
        await items.first().getByRole('button').first().click();
        await items.first().locator('textarea').waitFor();
      },
    },
    {
      name: 'scheduled_file',
      anew: true,
      path: `#/chat/${channel}`,
      act: async (page, w) => {
        await page
          .getByLabel(w.attach ?? '', { exact: true })
          .last()
          .setInputFiles([{ name: 'pass.jpg', mimeType: 'image/jpeg', buffer: await picture(24) }]);
        await field(page).fill('Snow above 2,000 m **tonight**.');
        await press(page, w.scheduled_posts);
        await page.getByRole('dialog').getByRole('listitem').nth(1).waitFor();
        await page.waitForTimeout(300);
      },
    },
    // This scene is the last one. The draft in this scene opens the inline results again, and these results cover the
    // messages.
    {
      name: 'inline_results',
      anew: true,
      path: direct,
      act: async (page) => {
        await field(page).fill(`@${quiet.username} walk`);
        await page.getByRole('option').first().waitFor();
        await field(page).press('ArrowDown');
      },
    },
  ];
}

export async function enter(page: Page, url: string, scene: Scene, words: Readonly<Record<string, string>>) {
  await page.goto('about:blank');
  await page.goto(`${url}/app${scene.path}`);
  if (scene.who === null)
    await page.getByRole('button', { name: words.sign_in ?? '', exact: true }).waitFor();
  else await page.locator('.app .main').first().waitFor({ state: 'attached' });
  await page.locator('.spinner:visible').first().waitFor({ state: 'detached' });
  await page.waitForFunction(() => [...document.images].every((image) => image.complete));
  await scene.act?.(page, words);
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState }) => playState !== 'running'),
  );
}
