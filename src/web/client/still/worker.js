/**
 * The service worker. It shows a push notification for a message, unless a focused window shows the chat. A click on
 * the notification opens the chat. The worker stores nothing, and loads no part of the application.
 */
const answer_ms_max = 300;

/**
 * Asks a window for the id of the chat that it shows. Returns '' if the window shows no chat or does not answer in
 * time.
 */
function shownIn(client) {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => resolve(''), answer_ms_max);
    port1.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(String(data));
    };
    client.postMessage({ kind: 'which_chat' }, [port2]);
  });
}

const windows = () => self.clients.matchAll({ type: 'window', includeUncontrolled: true });

/** Returns whether a focused window shows the chat now. */
async function isSeen(chat) {
  const focused = (await windows()).filter((client) => client.focused);
  return (await Promise.all(focused.map(shownIn))).includes(String(chat));
}

async function show({ chat_id, message_id, title, body, date }) {
  if (await isSeen(chat_id)) return;
  await self.registration.showNotification(title, {
    body,
    // Because of this tag, the browser shows only the chat's latest message, with a sound each time.
    tag: `chat-${chat_id}`,
    renotify: true,
    timestamp: date * 1_000,
    data: { chat_id, message_id },
  });
}

async function open(chat) {
  const [client] = await windows();
  if (client === undefined) return self.clients.openWindow(`/app#/chat/${chat}`);
  client.postMessage({ kind: 'open_chat', chat });
  return client.focus();
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('push', (event) => {
  if (event.data) event.waitUntil(show(event.data.json()));
});
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.chat_id));
});
