/** Notifications while no window is open: whether this browser has them, and the service worker that shows them. */
import { call, get } from './api.js';
import { go, route } from './route.js';
import { leaving, me } from './session.js';
import { Cell } from './signal.js';

/** `none`: nothing is said of notifications, since the service or the browser has none. `blocked`: by the person, in the browser. */
export type PushChoice = 'none' | 'off' | 'on' | 'blocked';

export const pushChoice = new Cell<PushChoice>('none');

/** Whether the service notifies anybody: in another browser of the person, perhaps. */
export const pushServed = new Cell(false);

const worker = '/app/worker.js';
let publicKey = '';

const isSupported = () =>
  'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis;

const bytesOf = (text: string) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));

function sameBytes(one: ArrayBuffer | null | undefined, other: Uint8Array): boolean {
  const bytes = new Uint8Array(one ?? new ArrayBuffer(0));
  return bytes.length === other.length && bytes.every((byte, i) => byte === other[i]);
}

const known = async () =>
  (await navigator.serviceWorker.getRegistration(worker))?.pushManager.getSubscription();

const ownerKey = 'petrel.push';

/** Who turned notifications on in this browser, as long as they did not sign out: nobody else has asked for them. */
const owner = {
  read: () => localStorage.getItem(ownerKey) === String(me.value?.id),
  note: () => localStorage.setItem(ownerKey, String(me.value?.id)),
};

const tell = (subscription: PushSubscription) =>
  call('POST', '/api/me/push', subscription.toJSON() as Record<string, unknown>);

/** No other text becomes the address of a script. */
const workerUrl = (): string => {
  const { trustedTypes } = globalThis as {
    trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(text: string): string } };
  };
  policy ??= trustedTypes?.createPolicy('petrel', { createScriptURL: () => worker });
  return policy?.createScriptURL(worker) ?? worker;
};
let policy: { createScriptURL(text: string): string } | undefined;

/** Waits until the worker runs. It controls no page, so that nothing else tells. */
function activeOf({ active, installing, waiting }: ServiceWorkerRegistration): Promise<void> {
  const coming = installing ?? waiting;
  if (active || !coming) return Promise.resolve();
  return new Promise((resolve) => {
    const check = () => coming.state === 'activated' && resolve();
    coming.addEventListener('statechange', check);
    check();
  });
}

/** A subscription under the key that the service has now. */
async function subscribe(): Promise<void> {
  const key = bytesOf(publicKey);
  const registration = await navigator.serviceWorker.register(workerUrl());
  await activeOf(registration);
  const present = await registration.pushManager.getSubscription();
  if (present && !sameBytes(present.options.applicationServerKey, key)) await present.unsubscribe();
  await tell(await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
}

/** Asks the person, who has just asked for it. Throws where the browser cannot reach its push service. */
export async function turnOn(): Promise<void> {
  const permission = await Notification.requestPermission();
  if (permission !== 'granted') {
    pushChoice.set(permission === 'denied' ? 'blocked' : 'off');
    return;
  }
  await subscribe();
  owner.note();
  pushChoice.set('on');
}

export async function turnOff(): Promise<void> {
  const present = await known();
  if (present) {
    await call('DELETE', '/api/me/push', { endpoint: present.endpoint });
    await present.unsubscribe();
  }
  pushChoice.set('off');
}

/** Whoever signs in next is not told what was for this person. */
async function leave(token: string): Promise<void> {
  if (!isSupported()) return;
  const present = await known();
  if (!present) return;
  const { endpoint } = present;
  // With the token of who leaves; where it is not valid any more, its subscriptions are gone already.
  await Promise.allSettled([
    call('DELETE', '/api/me/push', { endpoint }, { as: token }),
    present.unsubscribe(),
  ]);
}

/** Looks at what the browser has, and tells the service of it anew: it may have forgotten. Returns what ends it. */
export function startPush(): () => void {
  void look().catch(() => {});
  if (!isSupported()) return () => {};
  const onMessage = ({ data, ports }: MessageEvent<{ kind: string; chat?: number }>) => {
    if (data.kind === 'open_chat') go(`chat/${data.chat}`);
    if (data.kind === 'which_chat') ports[0]?.postMessage(route.value.page === 'chat' ? route.value.id : '');
  };
  navigator.serviceWorker.addEventListener('message', onMessage);
  leaving.add(leave);
  const unfollow = route.subscribe(() => void clear());
  return () => {
    navigator.serviceWorker.removeEventListener('message', onMessage);
    leaving.delete(leave);
    unfollow();
  };
}

async function look(): Promise<void> {
  const state = await get<{ public_key?: string }>('/api/me/push');
  if (state.public_key === undefined) return;
  publicKey = state.public_key;
  pushServed.set(true);
  if (!isSupported()) return;
  if (Notification.permission === 'denied') pushChoice.set('blocked');
  else {
    const present = Notification.permission === 'granted' ? await known() : null;
    if (present && owner.read()) await subscribe();
    // What was for another person is not shown to this one.
    else await present?.unsubscribe();
    pushChoice.set(present && owner.read() ? 'on' : 'off');
  }
  await clear();
}

/** What is open needs no notification. */
async function clear(): Promise<void> {
  const { page, id } = route.value;
  if (page !== 'chat') return;
  const registration = await navigator.serviceWorker.getRegistration(worker);
  const shown = (await registration?.getNotifications({ tag: `chat-${id}` })) ?? [];
  for (const notification of shown) notification.close();
}
