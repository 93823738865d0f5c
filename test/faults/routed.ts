/**
 * Gives each bot of a world three webhook routes. Checks that each update goes to its route. Can also make the
 * receivers delay their answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Arrival, keepBooks } from '../delivery/world.js';
import type { World } from './world.js';

/**
 * The names of the routes, in order. `groups` gets the updates of groups, `half` gets the updates of half of the
 * people, and `rest` gets all other updates.
 */
const names = ['groups', 'half', 'rest'] as const;

/** Gives every bot three routes. Each route has its own receiver. */
export async function routeAll(world: World, answerMs: number) {
  const half = world.users.slice(0, 3).map(({ id }) => id);
  const listed = { groups: world.groups, half, rest: undefined };
  const expected = (chat: number) =>
    world.groups.includes(chat) ? 'groups' : half.includes(chat) ? 'half' : 'rest';
  const astray: string[] = [];
  const taken = { groups: 0, half: 0, rest: 0 };
  const closing: Array<() => Promise<void>> = [];
  let held = Promise.resolve();
  let open = 0;
  for (const name of names) {
    const books = new Map<number, Awaited<ReturnType<typeof keepBooks>>>();
    for (const { id } of world.bots) {
      const made = await keepBooks(async ({ body, chat }: Arrival) => {
        world.hear(id, JSON.parse(body.toString()));
        if (chat !== undefined) taken[name]++;
        if (chat !== undefined && expected(chat) !== name) astray.push(`${chat} on ${name}`);
        open++;
        await sleep(answerMs);
        await held;
        open--;
        return 200;
      });
      books.set(id, made);
      closing.push(() => made.close());
    }
    const receiverOf = (bot: number) => {
      const { url, certificate } = books.get(bot) as Awaited<ReturnType<typeof keepBooks>>;
      return { url, certificate };
    };
    const chats = listed[name] && { chat_ids: listed[name] };
    await world.push(({ id }) => ({ name, ...receiverOf(id), ...chats }), 'setWebhookRoute');
  }
  return {
    astray,
    taken,
    open: () => open,
    /** Makes the receivers delay all answers until the returned function is called. */
    hold(): () => void {
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    close: () => Promise.all(closing.map((each) => each())),
  };
}
