/**
 * Manages push notifications, which arrive while no window is open: their state in this browser, and the service
 * worker.
 */
import { call, get } from './api.js';
import { go, route } from './route.js';
import { leaving, me } from './session.js';
import { Cell } from './signal.js';
import { scriptUrl } from './trusted_scripts.js';

/**
 * The state of notifications. `none` means that the service or the browser does not support them. `blocked` means that
 * the person has blocked them in the browser.
 */
export type PushChoice = 'none' | 'off' | 'on' | 'blocked';

export const pushChoice = new Cell<PushChoice>('none');

/** Whether the service supports push notifications, even if this browser does not. */
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

/**
 * Remembers which person turned on notifications in this browser. This browser shows notifications only to that person.
 */
const owner = {
  read: () => localStorage.getItem(ownerKey) === String(me.value?.id),
  note: () => localStorage.setItem(ownerKey, String(me.value?.id)),
};

const tell = (subscription: PushSubscription) =>
  call('POST', '/api/me/push', subscription.toJSON() as Record<string, unknown>);

/**
 * Waits until the service worker is active. Cannot wait for `controllerchange`, because that event is only for pages
 * that the worker controls, and this worker controls none.
 */
function activeOf({ active, installing, waiting }: ServiceWorkerRegistration): Promise<void> {
  const coming = installing ?? waiting;
  if (active || !coming) return Promise.resolve();
  return new Promise((resolve) => {
    const check = () => coming.state === 'activated' && resolve();
    coming.addEventListener('statechange', check);
    check();
  });
}

/** Subscribes this browser to push notifications with the service's current key. */
async function subscribe(): Promise<void> {
  const key = bytesOf(publicKey);
  const registration = await navigator.serviceWorker.register(scriptUrl(worker));
  await activeOf(registration);
  const present = await registration.pushManager.getSubscription();
  if (present && !sameBytes(present.options.applicationServerKey, key)) await present.unsubscribe();
  await tell(await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
}

/**
 * Asks the browser for permission. Call this only after a click. Throws if the browser cannot reach its push service.
 */
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

/** Unsubscribes at sign-out, so that the next person in this browser gets no notifications for the previous one. */
async function leave(token: string): Promise<void> {
  if (!isSupported()) return;
  const present = await known();
  if (!present) return;
  const { endpoint } = present;
  // Uses the token of the person who signs out. If the token is no longer valid, the service has already removed the
  // subscriptions that were made with it.
  await Promise.allSettled([
    call('DELETE', '/api/me/push', { endpoint }, { as: token }),
    present.unsubscribe(),
  ]);
}

/**
 * Loads the state of notifications. Also sends the browser's subscription again, in case the service has lost it.
 * Returns a cleanup function.
 */
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
    // If another person subscribed in this browser, ends that subscription.
    else await present?.unsubscribe();
    pushChoice.set(present && owner.read() ? 'on' : 'off');
  }
  await clear();
}

/** Closes the notifications about the open chat. */
async function clear(): Promise<void> {
  const { page, id } = route.value;
  if (page !== 'chat') return;
  const registration = await navigator.serviceWorker.getRegistration(worker);
  const shown = (await registration?.getNotifications({ tag: `chat-${id}` })) ?? [];
  for (const notification of shown) notification.close();
}
